import { describe, expect, test } from 'vitest';

import { RELEASE_LINES } from '../../release-line.ts';
import { bundledJson } from '../../testing/bundle.ts';
import type { Fact } from '../facts/fact.ts';
import type { LineFacts } from '../facts/line-facts.ts';
import { openReleaseSchema } from '../schema/release-schema.ts';
import { factsOf } from './lines.ts';

interface Releases {
  readonly eras: Readonly<Record<string, readonly { since: string; until: string | null; value: unknown }[]>>;
  readonly lines: readonly {
    readonly line: string;
    readonly tags: readonly string[];
    readonly rpcCount: { readonly cmd: number };
    readonly first: { readonly grpcGo: string };
    readonly last: { readonly grpcGo: string };
  }[];
}
const releases = bundledJson('wire-releases', 'releases.json') as Releases;

/** The documents that a fact may stand on. */
const DOCUMENTS =
  /^(releases\.json|history\.json|wire\.md|domain-json\.md|handler-core\.md|launcher\.md|failure-modes\.md|captures) \S/;

const order = (tag: string): number =>
  tag
    .slice(1)
    .split('.')
    .reduce((sum, part) => sum * 1_000 + Number(part), 0);

/** What an era of the reference says about a release. */
function era(name: string, release: string): unknown {
  const found = releases.eras[name]?.find(
    ({ since, until }) => order(since) <= order(release) && (until === null || order(release) < order(until)),
  );
  if (found === undefined) throw new Error(`${name} says nothing about ${release}`);
  return found.value;
}

function allFacts(facts: LineFacts): readonly (readonly [name: string, fact: Fact<unknown>])[] {
  const { release, shared, launcher, handler } = facts;
  return [['release', release], ...[shared, launcher, handler].flatMap((part) => Object.entries(part))];
}

const PATCHES = RELEASE_LINES.flatMap((line) => [[line, 'first'] as const, [line, 'last'] as const]);

describe.each(PATCHES)('the facts of %s, %s patch', (line, patch) => {
  const facts = factsOf(line, patch);
  const release = facts.release.value;
  const text = (name: string): string => JSON.stringify(era(name, release));

  test('name a document and a place in it, each', () => {
    expect(facts.line).toBe(line);
    for (const [name, { source }] of allFacts(facts)) {
      for (const part of source.split('; ')) {
        const isFollowUp = /^(eras\.|captures|[A-Z])/.test(part);
        expect(isFollowUp || DOCUMENTS.test(part), `${name}: ${source}`).toBe(true);
      }
    }
  });

  test('cite eras that exist', () => {
    for (const [name, { source }] of allFacts(facts)) {
      for (const [, cited = ''] of source.matchAll(/eras\.(\w+)/g)) {
        expect(Object.keys(releases.eras), `${name}: ${source}`).toContain(cited);
      }
    }
  });

  test('are those of the patch release', () => {
    const entry = releases.lines.find((one) => one.line === line);
    expect(release).toBe(patch === 'last' ? entry?.tags.at(-1) : entry?.tags[0]);
    expect(facts.launcher.cmdRpcCount.value).toBe(entry?.rpcCount.cmd);
    expect(openReleaseSchema(release).cmdRpcs.size).toBe(entry?.rpcCount.cmd);
    const grpc = /v(\d+\.\d+\.\d+)/.exec(entry?.[patch].grpcGo ?? '')?.[1];
    expect(facts.shared.userAgent.value).toBe(`grpc-go/${grpc ?? ''}`);
  });

  test('agree with the eras about the launcher', () => {
    const { launcher, shared } = facts;
    expect(shared.authority.value === 'localhost').toBe(text('dialAuthority').includes('localhost'));
    expect(shared.printsNullCreationTimestamp.value).toBe(text('emptyCreationTimestamp').includes('null'));
    expect(launcher.notifySockets.value.length === 2).toBe(text('launcherNotifySocket').includes('legacy'));
    expect(launcher.reconnectEvent.value === 'ERROR').toBe(!text('errorDomainEvents').includes('never'));
    expect(launcher.extraEventAfterMigration.value).toBe(text('addedDomainEvents').includes('further MODIFIED'));
    expect(launcher.printsMigrationCompleted.value).toBe(text('migrationMetadataCompletedKey').startsWith('"printed'));
    expect(launcher.crashesWithoutFinalizeOptions.value).toBe(text('finalizeOptions').includes('crashes'));
    expect(launcher.workloadDisruption.value === 'allowPostCopy').toBe(
      text('workloadDisruptionGate').startsWith('"AllowPostCopy decides'),
    );
    expect(launcher.k8sEvents.value.map((reason) => `Warning ${reason}`)).toEqual(
      era('k8sEventsFromLauncher', release),
    );
    const without = { empty: 'empty string', null: 'the text null', failure: 'success=false' };
    expect(text('domainStatsShape')).toContain(without[launcher.statsWithoutDomain.value]);
    const switches = {
      options: /^"VirtualMachineOptions.ExpandDisksEnabled"$/,
      optionsOrClusterConfig: /prefers the latter/,
      always: /neither/,
    };
    expect(text('expandDisksFlags')).toMatch(switches[launcher.expandDisksSwitch.value]);
    expect(launcher.needsDisksInfo.value).toBe(text('disksInfoFromHandler').includes('filled'));
  });

  test('agree with the eras about the handler', () => {
    const { handler } = facts;
    expect(handler.migrationOptionKeys.value).toEqual(era('migrationOptionsKeys', release));
    expect(handler.unimplemented.value === 'passedThrough').toBe(
      text('unimplementedDetection').includes('passed through'),
    );
    expect(handler.sendsDisksInfo.value).toBe(text('disksInfoFromHandler').includes('filled'));
    expect(handler.expandDisksFlags.value === 'none').toBe(text('expandDisksFlags').includes('neither'));
    expect(handler.sendsInterfaceAttachment.value).toBe(
      !text('interfaceDomainAttachmentFromHandler').includes('not exist'),
    );
    expect(handler.finalizeOptions.value === 'empty').toBe(text('finalizeOptions').includes('empty options'));
    expect(handler.watchesNotifySocket.value).toBe(text('notifyServerSelfWatch').includes('every 5 s'));
    expect(handler.domainList.value === 'records').toBe(text('handlerSocketsForDomainList') === '"ghost records only"');
    expect(handler.migrationEnd.value === 'endTimestamp').toBe(
      text('migrationMetadataCompletedKey').includes('EndTimestamp'),
    );
    const lookups = { podsAndLegacy: 'as before', pods: 'only the pods directory', podsOfNode: 'NODE_NAME' };
    expect(text('handlerCmdSocketLookup')).toContain(lookups[handler.socketLookup.value]);
  });

  test('give calls the deadlines of the release', () => {
    const { vmiRequests, queries, byRpc } = facts.handler.timeouts.value;
    const said = era('rpcTimeoutsSeconds', release) as Readonly<Record<string, number | string>>;
    expect(vmiRequests).toBe(said['VMIRequest RPCs']);
    expect(queries).toBe(said['Info']);
    const rpcs = [...openReleaseSchema(release).cmdRpcs.values()];
    for (const { name, hasVmi } of rpcs.filter((rpc) => typeof said[rpc.name] === 'number')) {
      expect(byRpc[name] ?? (hasVmi ? vmiRequests : queries), name).toBe(said[name]);
    }
  });
});
