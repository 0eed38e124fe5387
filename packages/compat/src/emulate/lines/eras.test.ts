import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, test } from 'vitest';

import { bundledJson } from '../../testing/bundle.ts';

const PACKAGES = join(import.meta.dirname, '../../../..');
const PROTO = 'shared-proto/src';
const COMPAT = 'compat/src/emulate';
const MODEL = 'vm-model/src';
const AGREE_LAUNCHER = [`${COMPAT}/lines/lines.test.ts`, 'agree with the eras about the launcher'] as const;
const AGREE_HANDLER = [`${COMPAT}/lines/lines.test.ts`, 'agree with the eras about the handler'] as const;
const QUIRKS = `${COMPAT}/launcher/quirks.test.ts`;

/** Where each behaviour that changed between releases is tried: file and title of a test, ours first, then emulations. */
const TESTS: Readonly<Record<string, readonly (readonly [file: string, title: string])[]>> = {
  cmdVersionsServedByLauncher: [[`${PROTO}/connect.test.ts`, 'takes one version of several, packed or not']],
  cmdVersionsAcceptedByHandler: [[`${PROTO}/connect.test.ts`, 'a common version that is not implemented is an error']],
  notifyVersionsServedByHandler: [[`${PROTO}/notify/notify.test.ts`, 'agree on a version and pass events on']],
  notifyVersionsAcceptedByLauncher: [[`${PROTO}/notify/notify.test.ts`, 'agree on a version and pass events on']],
  negotiation: [
    [`${PROTO}/connect.test.ts`, 'FM-1.6 version negotiation'],
    [`${PROTO}/connect.test.ts`, 'a server without the info service is a failure to connect, not an old launcher'],
  ],
  dialAuthority: [
    [`${PROTO}/connect.test.ts`, 'FM-1.2 the client sends localhost as its authority'],
    [`${PROTO}/cmd/server.test.ts`, 'FM-1.1 a client of v1.0'],
    [`${COMPAT}/handler/handler.test.ts`, 'v1.0 names the socket path as authority in both directions, v1.1 does not'],
  ],
  dialOptions: [
    [`${PROTO}/connect.test.ts`, 'a quiet peer, which accepts and says nothing, fails when the time is over'],
    [`${PROTO}/connect.test.ts`, 'a socket whose listener is gone fails at once'],
  ],
  keepalive: [
    [`${PROTO}/cmd/frames.test.ts`, 'a client never pings by itself, since servers written in Go close over it'],
  ],
  messageSizeLimits: [
    [`${PROTO}/cmd/server.test.ts`, 'a server takes more than 4 MiB, and both ends refuse to send more'],
    [`${COMPAT}/transport/grpc-client.test.ts`, 'a message over 4 MiB is refused by both sides'],
  ],
  rpcTimeoutsSeconds: [
    [`${PROTO}/cmd/calls.test.ts`, 'are those of the v1.9.0 handler'],
    [`${COMPAT}/lines/lines.test.ts`, 'give calls the deadlines of the release'],
  ],
  notifyClient: [
    [`${PROTO}/notify/sender.test.ts`, 'starts over with dial and version check after an RPC error, a second later'],
    [`${PROTO}/notify/sender.test.ts`, 'gives up after 20 seconds and goes on with the next event'],
    [`${COMPAT}/handler/handler.test.ts`, 'events of the time without a notify server arrive once it is back'],
  ],
  unimplementedDetection: [
    [`${PROTO}/cmd/calls.test.ts`, 'FM-1.5 %s missing at an older launcher is Unimplemented'],
    [
      `${COMPAT}/handler/handler.test.ts`,
      'an RPC that a launcher lacks is a generic error for v0.59 and passed through',
    ],
  ],
  disconnectDetection: [
    [`${PROTO}/texts.test.ts`, 'FM-3.9 whatever ends a connection counts as its loss, and nothing else'],
    [`${COMPAT}/handler/handler.test.ts`, 'a launcher that is gone does not matter to calls that end a VM'],
  ],
  nilResponseTolerance: [[`${PROTO}/cmd/calls.test.ts`, 'a missing nested response counts as success']],
  errorTextsMatchedByHandler: [
    ['handler/src/vmi/secure-boot.test.ts', 'missing firmware, %s, is a mismatch that no retry mends'],
    ['launcher/src/converter/convert-rules.test.ts', 'EFI OVMF roms missing for booting in EFI mode'],
  ],
  errorTextsMatchedElsewhere: [
    ['launcher/src/cmd-server/wire-error.test.ts', 'Guest agent not available for now'],
    ['launcher/src/cmd-server/wire-error.test.ts', 'the limit of a guest on being frozen reaches who waits'],
  ],
  jsonDecoding: [
    [`${MODEL}/domain/json.test.ts`, 'unknown keys are dropped, and other capitalisations of known ones are unknown'],
    [`${MODEL}/domain/json.test.ts`, 'of duplicate keys the last wins'],
    [`${MODEL}/payloads/payloads.test.ts`, 'a key in another case is another key'],
  ],
  emptyCreationTimestamp: [
    [`${MODEL}/payloads/payloads.test.ts`, 'objects before v1.8 print an unset creationTimestamp'],
    [`${MODEL}/domain/traps.test.ts`, 'creationTimestamp null, up to v1.7'],
  ],
  handlerCmdSocketLookup: [
    ['handler/src/launchers/launchers.test.ts', 'two pods with sockets are an error that says so'],
    [`${COMPAT}/handler/sockets.test.ts`, 'up to v1.5 a second pod of a VM is one too many, from v1.6 on only one'],
  ],
  handlerSocketsForDomainList: [
    ['handler/src/launchers/launchers.test.ts', 'FM-3.1 the ghost record is there before the first dial'],
    [`${COMPAT}/handler/sockets.test.ts`, 'up to v1.4 a listing finds sockets without a ghost record, later ones only'],
  ],
  launcherCmdSocket: [
    [`${PROTO}/cmd/server.test.ts`, 'leaves the socket under its new name after a rename, as launchers do'],
  ],
  handlerNotifySocket: [
    [
      'handler/src/notify-server/notify-gate.test.ts',
      'the shared socket answers version 1 and takes events without an',
    ],
  ],
  launcherNotifySocket: [[QUIRKS, 'a launcher of %s uses a legacy notify socket in its pod: %s'], AGREE_LAUNCHER],
  notifyPipe: [
    ['notify-pipe-proxy/src/pipe.test.ts', 'is where the launcher looks for it, through the links of the pod'],
    ['handler/src/launchers/launchers.test.ts', 'a pipe that cannot be made closes the connection, keeps the record'],
  ],
  unresponsiveMarker: [
    ['handler/src/launchers/launchers.test.ts', 'FM-3.6 the marker of a pod that is gone is no error'],
  ],
  notifyServerSelfWatch: [
    ['handler/src/notify-server/notify-gate.test.ts', 'FM-2.5 after ten failures in a row the gate gives up'],
    [`${COMPAT}/handler/handler.test.ts`, 'a handler of %s notices the loss of its notify socket: %s'],
  ],
  errorDomainEvents: [
    [
      'handler/src/notify-server/event-handlers.test.ts',
      'FM-2.3 an ERROR event is only logged, with the name of its VM',
    ],
    [QUIRKS, 'a launcher of %s tells of a libvirt that came back as its release does'],
  ],
  addedDomainEvents: [
    ['handler/src/notify-server/event-handlers.test.ts', 'domain events reach the store, in both directions'],
    AGREE_LAUNCHER,
  ],
  migrationOptionsKeys: [
    [`${MODEL}/payloads/payloads.test.ts`, 'migration options of v1.0: what handlers before v1.5 do not say'],
    AGREE_HANDLER,
  ],
  workloadDisruptionGate: [
    [`${MODEL}/payloads/payloads.test.ts`, 'migration options of v1.0: what handlers before v1.5 do not say'],
    AGREE_LAUNCHER,
  ],
  syncMigrationTargetOptions: [[`${COMPAT}/handler/handler.test.ts`, 'migrate a VM, each in its role']],
  disksInfoFromHandler: [
    [
      `${COMPAT}/handler/handler.test.ts`,
      'a launcher up to v1.5 refuses a container disk whose handler sends no DisksInfo',
    ],
    AGREE_HANDLER,
  ],
  expandDisksFlags: [
    [`${COMPAT}/handler/handler.test.ts`, 'only the handlers that send the switch make old launchers grow disks'],
    AGREE_HANDLER,
  ],
  interfaceDomainAttachmentFromHandler: [
    ['launcher/src/cmd-server/complete-options.test.ts', 'a v1.0 handler sends no attachments: bridge and masquerade'],
    AGREE_HANDLER,
  ],
  k8sEventsFromLauncher: [
    [QUIRKS, 'a launcher of %s sends the Kubernetes events that its release knows'],
    [
      'handler/src/notify-server/event-handlers.test.ts',
      'Kubernetes events are recorded for a VMI that is known, by its',
    ],
  ],
  finalizeOptions: [
    [`${PROTO}/cmd/calls.test.ts`, 'are completed before they are sent'],
    [`${PROTO}/cmd/server.test.ts`, 'options are there even if the peer sent none'],
  ],
  vmiWithoutVmiMessage: [
    [`${PROTO}/cmd/server.test.ts`, 'bad requests get an error and never a crash'],
    [QUIRKS, 'ends a launcher of %s only if it is young enough'],
  ],
  migrationMetadataCompletedKey: [
    [
      `${MODEL}/domain/json.test.ts`,
      'MigrationMetadata.Completed, which handlers up to v1.5 need, is printed only when set',
    ],
    [
      `${COMPAT}/handler/handler.test.ts`,
      'a source handler up to v1.5 never sees the end of a migration of a launcher',
    ],
  ],
  domainStatsShape: [
    [`${MODEL}/payloads/payloads.test.ts`, 'null is zero, for a scalar, an object, a list and a whole document'],
    AGREE_LAUNCHER,
  ],
  guestInfoErrors: [[`${PROTO}/documents/documents.test.ts`, 'an answer without document has none']],
  getDomainStatusFill: [[`${COMPAT}/launcher/captures.test.ts`, 'a launcher of %s answers %s as the real one did']],
};

const eras = Object.keys((bundledJson('wire-releases', 'releases.json') as { readonly eras: object }).eras);

test('every behaviour that changed between releases is tried somewhere', () => {
  expect(Object.keys(TESTS).sort()).toEqual([...eras].sort());
});

describe.each(Object.entries(TESTS))('%s is tried', (_era, tests) => {
  test.each(tests)('in %s: %s', (file, title) => {
    expect(readFileSync(join(PACKAGES, file), 'utf8').replaceAll(/'\s*\+\s*'/g, '')).toContain(title);
  });
});
