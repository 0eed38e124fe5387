import { emptyDomain, parseVmiJson, renderDomainJson, renderVmiJson } from '@virtwire/vm-model';
import { EMBEDDED, type EmbeddedField, printEmbedded, readEmbedded } from '@virtwire/vm-model/payloads';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { CMD_RPC_NAMES, type CmdRpc, methodName } from '../cmd/rpcs.ts';
import { openHistory } from '../history/index.ts';
import { cmdV1, connectCmd, notifyV1, serveCmd } from '../index.ts';
import { tempSocket, type TempSocket } from '../testing/sockets.ts';
import { withDocuments } from './client.ts';
import { domainEvent, k8sEvent, readDomainEvent, readK8sEvent } from './notify.ts';
import { CMD_DOCUMENTS, type DocumentTree, NOTIFY_DOCUMENTS } from './table.ts';

const history = openHistory();
const RELEASE = 'v1.9.0';

/** Every place of a document below a message of the schema: `options.pluginsJson`, and for a VMI just `vmi`. */
function placesOf(message: string): Record<string, string> {
  const places: Record<string, string> = {};
  for (const field of history.message(message)?.fields ?? []) {
    if (!history.has(field, RELEASE) || field.type.kind !== 'singular') continue;
    const document = `${message.split('.').at(-1) ?? ''}.${field.name}`;
    if (document in EMBEDDED) places[field.name] = document;
    else if (field.type.type === 'VMI') places[field.name] = 'VMI';
    else if (history.message(field.type.type) !== undefined) {
      for (const [below, place] of Object.entries(placesOf(field.type.type))) places[`${field.name}.${below}`] = place;
    }
  }
  return places;
}

function flatten(tree: DocumentTree, prefix = ''): Record<string, string> {
  return Object.assign(
    {},
    ...Object.entries(tree).map(([key, place]) =>
      typeof place === 'string' ? { [prefix + key]: place } : flatten(place, `${prefix}${key}.`),
    ),
  ) as Record<string, string>;
}

describe('the table of documents is that of the schema', () => {
  test.each(CMD_RPC_NAMES)('%s', (rpc) => {
    const shape = history.shape(RELEASE, rpc);
    expect(flatten(CMD_DOCUMENTS[rpc].request)).toEqual(placesOf(shape?.request ?? ''));
    expect(flatten(CMD_DOCUMENTS[rpc].response)).toEqual(placesOf(shape?.response ?? ''));
  });

  test.each(['DomainEventRequest', 'K8sEventRequest'] as const)('%s', (message) => {
    expect(flatten(NOTIFY_DOCUMENTS[message])).toEqual(placesOf(message));
  });

  test('holds every document that there is', () => {
    const used = [...Object.values(CMD_DOCUMENTS).flatMap(({ request, response }) => [request, response])]
      .concat(Object.values(NOTIFY_DOCUMENTS) as never)
      .flatMap((tree) => Object.values(flatten(tree)));
    expect(new Set(used.map((place) => (place === 'VMI' ? 'VMI.vmiJson' : place)))).toEqual(
      new Set(Object.keys(EMBEDDED)),
    );
  });
});

/** A document of each field, with a key that nobody knows and a number of 64 bits, as Go would print it. */
const VMI = parseVmiJson('{"metadata":{"name":"vm","namespace":"ns","uid":"u"},"spec":{"later":18446744073709551615}}');
const DOMAIN = emptyDomain();
DOMAIN.Spec.Name = 'ns_vm';
const DOCUMENTS: Readonly<Record<EmbeddedField, string>> = {
  'VMI.vmiJson': renderVmiJson(VMI),
  'MigrationRequest.options': printed('MigrationRequest.options', '{"Bandwidth":"64Mi","later":1}'),
  'InjectLaunchSecretRequest.options': printed('InjectLaunchSecretRequest.options', '{"header":"h","later":1}'),
  'BackupRequest.options': printed('BackupRequest.options', '{"backupName":"b","later":1}'),
  'RedefineCheckpointRequest.checkpoint': printed('RedefineCheckpointRequest.checkpoint', '{"name":"c","later":1}'),
  'VirtualMachineOptions.pluginsJson': printed('VirtualMachineOptions.pluginsJson', '[{"spec":{},"later":1}]'),
  'DomainResponse.domain': renderDomainJson(DOMAIN),
  'DomainStatsResponse.domainStats': printed(
    'DomainStatsResponse.domainStats',
    '{"Name":"ns_vm","Cpu":{"TimeSet":true,"Time":18446744073709551615}}',
  ),
  'GuestInfoResponse.guestInfoResponse': printed('GuestInfoResponse.guestInfoResponse', '{"hostname":"h","later":1}'),
  'GuestUserListResponse.guestUserListResponse': printed(
    'GuestUserListResponse.guestUserListResponse',
    '[{"userName":"u","loginTime":1.5,"later":1}]',
  ),
  'GuestFilesystemsResponse.guestFilesystemsResponse': printed(
    'GuestFilesystemsResponse.guestFilesystemsResponse',
    '[{"diskName":"vda1","later":1}]',
  ),
  'SEVInfoResponse.sevInfo': printed('SEVInfoResponse.sevInfo', '{"pdh":"p","later":1}'),
  'LaunchMeasurementResponse.launchMeasurement': printed(
    'LaunchMeasurementResponse.launchMeasurement',
    '{"measurement":"m","later":1}',
  ),
  'DomainEventRequest.domainJSON': renderDomainJson(DOMAIN),
  'DomainEventRequest.statusJSON': printed('DomainEventRequest.statusJSON', '{"message":"no","later":1}'),
  'K8sEventRequest.eventJSON': printed('K8sEventRequest.eventJSON', '{"reason":"r","later":1}'),
};

function printed(field: EmbeddedField, json: string): string {
  return printEmbedded(field, readEmbedded(field, json) ?? EMBEDDED[field].zero());
}

/** A value at every place of a tree. */
function filled(tree: DocumentTree, at: (place: EmbeddedField | 'VMI') => unknown): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(tree).map(([key, place]) => [key, typeof place === 'string' ? at(place) : filled(place, at)]),
  );
}

const fieldOf = (place: EmbeddedField | 'VMI'): EmbeddedField => (place === 'VMI' ? 'VMI.vmiJson' : place);
const documentAt = (place: EmbeddedField | 'VMI'): unknown => EMBEDDED[fieldOf(place)].parse(DOCUMENTS[fieldOf(place)]);
const asText = (value: unknown): unknown => (value instanceof Uint8Array ? Buffer.from(value).toString('utf8') : value);
const jsonAt = (place: EmbeddedField | 'VMI'): unknown => {
  const json = DOCUMENTS[fieldOf(place)];
  if (place === 'VMI') return { vmiJson: Buffer.from(json) };
  return /(Response\.(domain|domainStats|guest))/.test(place) ? json : Buffer.from(json);
};

/** The leaves of a message that a tree names, as text. */
function textsOf(message: unknown, tree: DocumentTree): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(tree).map(([key, place]) => {
      const value = (message as Record<string, unknown>)[key];
      if (place === 'VMI') return [key, asText((value as { vmiJson: Uint8Array }).vmiJson)];
      return [key, typeof place === 'string' ? asText(value) : textsOf(value, place)];
    }),
  );
}

describe('each RPC in documents, over a real socket', () => {
  let socket: TempSocket;
  beforeEach(() => void (socket = tempSocket()));
  afterEach(() => socket[Symbol.dispose]());

  test.each(CMD_RPC_NAMES)('%s', async (rpc: CmdRpc) => {
    const { request, response } = CMD_DOCUMENTS[rpc];
    const received: unknown[] = [];
    await using _server = await serveCmd(socket.path, {
      [methodName(rpc)]: (message: unknown) => {
        received.push(textsOf(message, request));
        return filled(response, jsonAt);
      },
    });
    using client = await connectCmd(socket.path);
    const launcher = withDocuments(client);
    const call = launcher[methodName(rpc)] as (request: unknown) => Promise<{ ok: boolean; value?: object }>;
    const timeout = rpc === 'Exec' ? { timeoutSeconds: 1 } : {};
    const result = await call({ ...filled(request, documentAt), ...timeout });
    expect(result).toMatchObject({ ok: true, value: filled(response, documentAt) });
    expect(received).toEqual([filled(request, (place) => DOCUMENTS[fieldOf(place)])]);
  });

  test('an answer without document has none', async () => {
    await using _server = await serveCmd(socket.path, { getDomain: () => undefined, getVMStats: () => undefined });
    using client = await connectCmd(socket.path);
    expect(await withDocuments(client).getDomain()).toMatchObject({ ok: true, value: { domain: undefined } });
    expect(await withDocuments(client).getVMStats()).toMatchObject({ ok: true, value: { domainStats: undefined } });
  });

  test.each([
    ['no JSON', '{"Spec":', 'unexpected end of JSON input'],
    ['another type', '{"Spec":{"Name":5}}', 'json: cannot unmarshal number'],
  ])('an answer whose document is %s ends the call, with Go words', async (_what, domain, detail) => {
    await using _server = await serveCmd(socket.path, { getDomain: () => ({ domain }) });
    using client = await connectCmd(socket.path);
    const result = await withDocuments(client).getDomain();
    expect(result).toMatchObject({ ok: false, error: { code: 'BadDocument' } });
    expect(!result.ok && result.error.detail).toContain(detail);
  });

  test('failures keep their error, and what else the answer says', async () => {
    await using _server = await serveCmd(socket.path, {
      redefineCheckpoint: () => ({ response: { success: false, message: 'no' }, checkpointInvalid: true }),
    });
    using client = await connectCmd(socket.path);
    const launcher = withDocuments(client);
    expect(await launcher.redefineCheckpoint({ vmi: VMI, checkpoint: { name: 'c' } })).toMatchObject({
      ok: false,
      error: { code: 'Failed', detail: 'no' },
      answer: { checkpointInvalid: true },
    });
    expect(await launcher.getUsers()).toMatchObject({ ok: false, error: { code: 'Unimplemented' } });
  });

  test('a document that cannot be printed ends the call before it is sent', async () => {
    await using _server = await serveCmd(socket.path, {});
    using client = await connectCmd(socket.path);
    const cyclic = { ...VMI };
    Object.assign(cyclic, { self: cyclic });
    expect(await withDocuments(client).pauseVirtualMachine({ vmi: cyclic })).toMatchObject({
      ok: false,
      error: { code: 'BadDocument' },
    });
  });

  test('options that are left out are those of KubeVirt: migration is told everything, in full', async () => {
    const texts: string[] = [];
    await using _server = await serveCmd(socket.path, {
      migrateVirtualMachine: ({ options }) => void texts.push(Buffer.from(options).toString()),
    });
    using client = await connectCmd(socket.path);
    await withDocuments(client).migrateVirtualMachine({ vmi: VMI, options: { AllowPostCopy: true } });
    expect(texts).toEqual([
      '{"Bandwidth":"0","ProgressTimeout":0,"CompletionTimeoutPerGiB":0,"MaxDowntimeMs":0,"UnsafeMigration":false,' +
        '"AllowAutoConverge":false,"AllowPostCopy":true,"ParallelMigrationThreads":null,' +
        '"AllowWorkloadDisruption":false,"StallDetectorOptions":null,"Compression":null}',
    ]);
  });
});

describe('events in documents', () => {
  test('a domain event is printed and read', () => {
    const bytes = notifyV1.DomainEventRequest.encode(
      notifyV1.DomainEventRequest.fromPartial(domainEvent({ eventType: 'MODIFIED', domainJSON: DOMAIN })),
    ).finish();
    const event = readDomainEvent(notifyV1.DomainEventRequest.decode(bytes));
    expect(event).toMatchObject({ eventType: 'MODIFIED', domainJSON: { Spec: { Name: 'ns_vm' } } });
    expect(event.statusJSON).toBeUndefined();
  });

  test('an error event has a status, and a Kubernetes event its object', () => {
    const statusJSON = Buffer.from('{"metadata":{},"status":"Failure","message":"lost","later":1}');
    const request = notifyV1.DomainEventRequest.fromPartial({ eventType: 'ERROR', statusJSON });
    expect(readDomainEvent(request).statusJSON).toMatchObject({ message: 'lost', later: 1 });
    const eventJSON = { reason: 'IOerror', message: 'm', type: 'Warning' } as never;
    const sent = notifyV1.K8sEventRequest.fromPartial(k8sEvent({ eventJSON }));
    expect(readK8sEvent(sent).eventJSON).toMatchObject({ reason: 'IOerror', type: 'Warning' });
  });
});

test('fields of a message that nobody knows survive being read and printed', () => {
  const bytes = Buffer.concat([
    cmdV1.VMIRequest.encode(
      cmdV1.VMIRequest.fromPartial({ vmi: { vmiJson: Buffer.from('{}') }, options: {} }),
    ).finish(),
    Buffer.from('da3e027879', 'hex'), // field 1003, text "xy"
  ]);
  const message = cmdV1.VMIRequest.decode(bytes);
  expect(Buffer.from(cmdV1.VMIRequest.encode(message).finish())).toEqual(bytes);
});
