import type { ReleaseLine } from '../../release-line.ts';
import { fact } from '../facts/fact.ts';
import type { HandlerFacts, LauncherFacts, LineFacts, SharedFacts } from '../facts/line-facts.ts';

/** What the first patch release of a line does otherwise than the last one. */
interface Changes {
  readonly shared?: Partial<SharedFacts>;
  readonly launcher?: Partial<LauncherFacts>;
  readonly handler?: Partial<HandlerFacts>;
}

const DOMAIN_LIST = 'releases.json eras.handlerSocketsForDomainList';
const listsSockets: Partial<HandlerFacts> = { domainList: fact('socketsAndRecords', DOMAIN_LIST) };
const watchesNot: Partial<HandlerFacts> = {
  watchesNotifySocket: fact(false, 'releases.json eras.notifyServerSelfWatch'),
};
const failsPing: Partial<LauncherFacts> = { guestPingWithoutDomain: fact('error', 'wire.md 6 GuestPing') };
const userAgent = (line: ReleaseLine, version: string): Partial<SharedFacts> => ({
  userAgent: fact(`grpc-go/${version}`, `releases.json lines ${line} grpcGo`),
});

/** Freezing had the deadline of other requests before v1.6.4 and v1.7.2. */
function timeoutsWith(more: Readonly<Record<string, number>>): Pick<HandlerFacts, 'timeouts'> {
  const byRpc = { GetLaunchMeasurement: 5, InjectLaunchSecret: 20, GetDomainDirtyRateStats: 20, ...more };
  return { timeouts: fact({ vmiRequests: 20, queries: 5, byRpc }, 'releases.json eras.rpcTimeoutsSeconds') };
}

const CHANGES: Readonly<Partial<Record<ReleaseLine, Changes>>> = {
  'v1.1': {
    shared: userAgent('v1.1', '1.49.0'),
    launcher: {
      readsInterfaceAttachment: fact(false, 'wire.md 10.4; releases.json eras.interfaceDomainAttachmentFromHandler'),
    },
    handler: {
      sendsInterfaceAttachment: fact(false, 'releases.json eras.interfaceDomainAttachmentFromHandler'),
    },
  },
  'v1.5': { handler: listsSockets },
  'v1.6': {
    shared: userAgent('v1.6', '1.65.0'),
    launcher: { statsKeys: fact(['Cached', 'NrVirtCpu', 'Delay', 'DataTotal', 'DirtyRate'], 'wire.md 9 DomainStats') },
    handler: { ...listsSockets, ...watchesNot, ...timeoutsWith({}) },
  },
  'v1.7': {
    shared: userAgent('v1.7', '1.68.1'),
    launcher: failsPing,
    handler: { ...watchesNot, ...timeoutsWith({ GetScreenshot: 5 }) },
  },
  'v1.8': { shared: userAgent('v1.8', '1.72.1'), launcher: failsPing, handler: watchesNot },
};

/** The facts of the first patch release of a line: those of the last one, with what was still otherwise. */
export function firstPatchOf(last: LineFacts): LineFacts {
  const { line } = last;
  const { shared, launcher, handler } = CHANGES[line] ?? {};
  return {
    line,
    release: fact(`${line}.0`, `releases.json lines ${line} tags`),
    shared: { ...last.shared, ...shared },
    launcher: { ...last.launcher, ...launcher },
    handler: { ...last.handler, ...handler },
  };
}
