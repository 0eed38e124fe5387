import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { connect as connectSocket, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  CMD_RPC_NAMES,
  CMD_RPCS,
  connectCmd,
  connectNotify,
  serveCmd,
  serveNotify,
  vmiRequest,
} from '@virtwire/shared-proto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readConnection } from '../connection/calls.ts';
import { startEmulatedHandler } from '../emulate/handler/handler.ts';
import { startEmulatedLauncher } from '../emulate/launcher/launcher.ts';
import { createNodeDirs } from '../matrix/node-dirs.ts';
import { POD_UID, scheduledVmi, VM } from '../matrix/test-vmi.ts';
import { RELEASE_LINES } from '../release-line.ts';
import { readRecordings } from '../replay/recordings.ts';
import { replay } from '../replay/replay.ts';
import { startRecorder } from './record.ts';

/** What must not reach the disk, in all its places; a marker of letters that survives every encoding. */
const SECRET = 'HuNtEr2ZqXv';

let out: string;
let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'vrec'));
  out = join(dir, 'out');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const filesIn = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

/** A text as it would look in base64, whatever stands before it: the letters that do not depend on their neighbours. */
const inBase64 = (text: string): readonly string[] =>
  [0, 1, 2].map((before) => {
    const encoded = Buffer.from(`${'_'.repeat(before)}${text}`)
      .toString('base64')
      .replaceAll('=', '');
    return encoded.slice(before === 0 ? 0 : 4, -4);
  });

/** Files in which a text stands, as it is, in hex or in base64. */
function holding(text: string): readonly string[] {
  const forms = [text, Buffer.from(text).toString('hex'), ...inBase64(text)];
  return filesIn(out).filter((file) => {
    const content = readFileSync(file, 'latin1');
    return forms.some((form) => content.includes(form));
  });
}

test('what passes through a recorder arrives, is written in the format of captures, and replays', async () => {
  using dirs = createNodeDirs();
  const { socketsDir, shareDir } = dirs.pod(POD_UID);
  await using launcher = await startEmulatedLauncher({ line: 'v1.3', vmi: VM, socketsDir, shareDir });
  const listen = join(dirs.root, 'rec');
  {
    await using recorder = await startRecorder({ listen, to: launcher.cmdSocket, out, release: 'v1.3.1' });
    {
      using client = await connectCmd(listen);
      const vmi = scheduledVmi((one) => {
        one.spec.volumes = [{ name: 'c', cloudInitNoCloud: { userData: `#cloud-config password: ${SECRET}` } }];
      });
      expect((await client.syncVirtualMachine(vmiRequest(JSON.stringify(vmi)))).ok).toBe(true);
      expect((await client.getVMStats()).ok).toBe(false);
      const synced = launcher.calls.find(({ rpc }) => rpc === 'SyncVirtualMachine');
      expect(Buffer.from(synced?.requestBytes ?? []).toString()).toContain(SECRET);
    }
    expect(recorder.messages).toBe(3);
  }
  expect(readdirSync(out)).toEqual([
    ...['001-Info.json', '002-SyncVirtualMachine.json', '003-GetVMStats.json'],
    ...['connections', 'index.json', 'timeline.json'],
  ]);
  const written = readFileSync(join(out, '002-SyncVirtualMachine.json'), 'utf8');
  const message = JSON.parse(written) as { request: { base64: string } };
  expect(Buffer.from(message.request.base64, 'base64').toString('utf8')).toContain('"userData":"masked"');
  expect(message).toMatchObject({
    connection: 1,
    requestMetadata: { ':authority': ['localhost'], 'content-type': ['application/grpc'] },
    request: {
      type: 'kubevirt.cmd.v1.VMIRequest',
      protobufJSON: { vmi: { vmiJson: '@embedded' } },
      embedded: { 'vmi.vmiJson': { metadata: { name: VM.name } } },
    },
  });
  expect(holding(SECRET)).toEqual([]);
  const recordings = readRecordings(out);
  expect(recordings.connections.map(({ path }) => path)).toEqual([
    ...['connections/cmd-conn1.bin', 'connections/cmd-conn1.server.bin'],
  ]);
  expect((await replay(recordings)).problems).toEqual([]);
  rmSync(join(out, 'connections/cmd-conn1.bin'));
  expect((await replay(readRecordings(out))).problems).toEqual([
    { path: 'index.json', problem: 'lists connections/cmd-conn1.bin, which is not there' },
  ]);
});

test('a call that is given up before any answer is recorded, and replays between calls that are answered', async () => {
  using dirs = createNodeDirs();
  const { socketsDir, shareDir } = dirs.pod(POD_UID);
  await using launcher = await startEmulatedLauncher({
    ...{ line: 'v1.6', vmi: VM, socketsDir, shareDir, faults: { hang: ['GetUsers'] } },
  });
  const listen = join(dirs.root, 'rec');
  {
    await using _recorder = await startRecorder({ listen, to: launcher.cmdSocket, out, release: 'v1.6.0' });
    using client = await connectCmd(listen);
    const impatient = new AbortController();
    const users = client.getUsers({}, { signal: impatient.signal });
    await launcher.waitFor('the call', ({ calls }) => calls.some(({ rpc }) => rpc === 'GetUsers'));
    impatient.abort();
    expect((await users).ok).toBe(false);
    expect((await client.getDomain()).ok).toBe(true);
  }
  const given = JSON.parse(readFileSync(join(out, '002-GetUsers.json'), 'utf8')) as object;
  expect(given).toMatchObject({ grpcStatus: { code: 1, message: 'the call was broken off' } });
  expect((await replay(readRecordings(out))).problems).toEqual([]);
});

/** What handlers do with a VM between its start and its end. */
const ACTIONS = [
  ...(['start', 'update', 'pause', 'update', 'unpause', 'freeze', 'unfreeze', 'guestQueries', 'metrics'] as const),
  ...(['memoryDump', 'softReboot', 'reset', 'hotplugHostDevices', 'resync', 'stop'] as const),
];

/** Every release with itself, and with the newest handler. */
const PAIRS = RELEASE_LINES.flatMap((line) => [
  { handler: line, launcher: line },
  { handler: 'v1.9' as const, launcher: line },
]).slice(0, -1);

test.each(PAIRS)('a VM of $launcher with a handler of $handler is recorded, and replays', async (pair) => {
  using dirs = createNodeDirs();
  const { socketsDir, shareDir } = dirs.pod(POD_UID);
  await using launcher = await startEmulatedLauncher({
    ...{ line: pair.launcher, vmi: VM, socketsDir: join(dirs.root, 'real'), shareDir, lifeCycle: { agentMs: 1 } },
  });
  const listen = join(socketsDir, 'launcher-sock');
  {
    await using recorder = await startRecorder({ listen, to: launcher.cmdSocket, out, release: launcher.release });
    {
      await using handler = await startEmulatedHandler({
        ...{ line: pair.handler, podsDir: dirs.podsDir, shareDir: dirs.shareDir, podShareDir: () => shareDir },
      });
      const vmi = scheduledVmi() as unknown as Readonly<Record<string, unknown>>;
      for (const action of ACTIONS) {
        expect(await handler.run(action, vmi, POD_UID)).toMatchObject({ action });
        if (action === 'start') await launcher.waitFor('its agent', ({ state }) => state.isAgentConnected);
      }
    }
    expect(recorder.messages).toBeGreaterThan(20);
  }
  const result = await replay(readRecordings(out));
  expect(result.problems).toEqual([]);
  expect(result.connections).toBeGreaterThan(4);
});

/** A VMI with a secret in every place that could hold one. */
const SECRET_VMI = {
  metadata: {
    ...VM,
    annotations: {
      'kubectl.kubernetes.io/last-applied-configuration': SECRET,
      'kubevirt.io/ignitiondata': SECRET,
      'hooks.kubevirt.io/hookSidecars': JSON.stringify([
        { image: 'x', args: ['run', SECRET], env: [{ name: 'a', value: SECRET }] },
      ]),
      'example.org/note': `login: http://admin:${SECRET}@host/ password=${SECRET}`,
    },
  },
  size: 'KEPT',
  spec: {
    livenessProbe: {
      exec: { command: ['check', SECRET] },
      httpGet: { httpHeaders: [{ name: 'Authorization', value: SECRET }] },
    },
    accessCredentials: [{ sshPublicKey: { source: { secret: { secretName: 'kept-name' } } } }],
    domain: { launchSecurity: { sev: { session: SECRET, dhCert: SECRET } }, firmware: { serial: 'KEPT' } },
    volumes: [
      {
        cloudInitNoCloud: { userData: SECRET, userDataBase64: SECRET, networkData: SECRET, networkDataBase64: SECRET },
      },
      { cloudInitConfigDrive: { userData: `ssh-rsa ${SECRET.repeat(3)} me` } },
      { note: `-----BEGIN RSA PRIVATE KEY-----\n${SECRET}\n-----END RSA PRIVATE KEY-----` },
      { sysprep: SECRET, unattendXml: SECRET },
    ],
  },
};

/** The domain of a guest that was given secrets. */
const SECRET_DOMAIN = {
  Spec: {
    QEMUCmd: { QEMUEnv: [{ Name: 'A', Value: SECRET }], QEMUArg: [{ Value: `secret,id=s,data=${SECRET}` }] },
    SysInfo: { OEMStrings: [`io.systemd.credential:x=${SECRET}`] },
    Devices: { Graphics: [{ passwd: SECRET }] },
  },
};

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));

/** A request of each RPC with secrets wherever it takes text. */
function secretRequest(rpc: (typeof CMD_RPC_NAMES)[number]): Uint8Array {
  const codec = CMD_RPCS[rpc].request as {
    fromPartial(value: object): unknown;
    encode(value: unknown): { finish(): Uint8Array };
  };
  const fields: Readonly<Record<string, object>> = {
    Exec: { domainName: 'a_b', Command: 'passwd', Args: ['root', SECRET], timeoutSeconds: 1 },
    GuestPing: { domainName: 'a_b', timeoutSeconds: 1 },
    InjectLaunchSecret: { vmi: { vmiJson: json(SECRET_VMI) }, options: json({ header: SECRET, secret: SECRET }) },
    MigrateVirtualMachine: { vmi: { vmiJson: json(SECRET_VMI) }, options: json({ token: SECRET }) },
    BackupVirtualMachine: {
      vmi: { vmiJson: json(SECRET_VMI) },
      options: json({ backupName: 'b', backupKey: SECRET, backupCert: SECRET, caCert: SECRET }),
    },
    SyncVirtualMachine: {
      vmi: { vmiJson: json(SECRET_VMI) },
      options: { pluginsJson: json([{ spec: { password: SECRET, env: [{ name: 'x', value: SECRET }] } }]) },
    },
  };
  const known = 'vmi' in (codec.fromPartial({}) as object) ? { vmi: { vmiJson: json(SECRET_VMI) } } : {};
  return codec.encode(codec.fromPartial(fields[rpc] ?? known)).finish();
}

/** Answers with secrets. */
const SECRET_ANSWERS = {
  exec: () => ({ exitCode: 0, stdOut: SECRET }),
  getScreenshot: () => ({ mime: 'image/png', data: Buffer.from(SECRET) }),
  getDomain: () => ({ domain: JSON.stringify(SECRET_DOMAIN) }),
  getGuestInfo: () => {
    throw new Error(`failed with password=${SECRET}`);
  },
  guestPing: () => {
    throw new Error(`refused: http://root:${SECRET}@guest`);
  },
};

interface RawCall {
  readonly path: string;
  readonly message: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Calls one after the other on one connection, with any bytes and headers. */
async function callAll(socket: string, calls: readonly RawCall[]): Promise<void> {
  const session = connectHttp2('http://localhost', { createConnection: () => connectSocket(socket) });
  session.on('error', () => undefined);
  for (const { path, message, headers } of calls) {
    const stream = session.request({
      ':method': 'POST',
      ':authority': 'localhost',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
      ...headers,
    });
    const frame = Buffer.concat([Buffer.alloc(5), message]);
    frame.writeUInt32BE(message.length, 1);
    stream.end(frame);
    stream.resume();
    await new Promise<void>((resolve) => {
      stream.on('error', () => undefined);
      stream.once('close', () => resolve());
    });
  }
  const ended = new Promise<void>((resolve) => session.once('close', () => resolve()));
  session.close();
  await ended;
}

test('no secret reaches the disk: of any request or answer, in messages, headers and bytes of connections', async () => {
  const to = join(dir, 'cmd');
  const server = await serveCmd(to, SECRET_ANSWERS);
  {
    await using recorder = await startRecorder({ listen: join(dir, 'rec'), to, out, release: 'v1.9.0' });
    const known = CMD_RPC_NAMES.map((rpc) => ({ path: `/kubevirt.cmd.v1.Cmd/${rpc}`, message: secretRequest(rpc) }));
    const authorization = { authorization: `Bearer ${SECRET}`, 'x-secret-bin': Buffer.from(SECRET).toString('base64') };
    await callAll(join(dir, 'rec'), [
      ...known,
      { path: '/kubevirt.cmd.v1.Cmd/Ping', message: new Uint8Array(), headers: authorization },
      // The header is in the table of both sides now.
      { path: '/kubevirt.cmd.v1.Cmd/Ping', message: new Uint8Array(), headers: authorization },
      { path: '/kubevirt.cmd.v1.Cmd/NewMethod', message: Buffer.from(SECRET) },
      // A field that no release knows, and bytes that are no message.
      {
        path: '/kubevirt.cmd.v1.Cmd/Ping',
        message: Buffer.concat([Buffer.of(0xfa, 0x3f, SECRET.length), Buffer.from(SECRET)]),
      },
      { path: '/kubevirt.cmd.v1.Cmd/Ping', message: Buffer.from(`\x0f${SECRET}`) },
    ]);
    expect(recorder.messages).toBe(known.length + 5);
  }
  await server.stop(0);
  expect(filesIn(out).length).toBeGreaterThan(CMD_RPC_NAMES.length + 4);
  expect(holding(SECRET)).toEqual([]);
  // The masks leave the rest as it was.
  expect(holding('kept-name').length).toBeGreaterThan(10);
  // Compressed headers have to be read to be looked into.
  const { connections } = readRecordings(out);
  expect(connections.map(({ sender }) => sender)).toEqual(['client', 'server']);
  const streams = connections.flatMap(({ sender, bytes }) => readConnection(sender, bytes).streams);
  const headers = streams.flatMap((stream) => [...stream.headers, ...stream.trailers]);
  expect(headers.filter(({ name, value }) => name === 'authorization' && value === 'masked')).toHaveLength(2);
  expect(
    headers.filter(({ value }) => value.includes(SECRET) || inBase64(SECRET).some((s) => value.includes(s))),
  ).toEqual([]);
  const { problems } = await replay({ ...readRecordings(out), captures: [] });
  expect(problems.filter(({ path }) => path.includes('connections/'))).toEqual([]);
});

test('secrets in events do not reach the disk', async () => {
  const to = join(dir, 'domain-notify.sock');
  const server = await serveNotify(to, { handleDomainEvent: () => undefined, handleK8sEvent: () => undefined });
  {
    await using recorder = await startRecorder({ listen: join(dir, 'rec'), to, out, release: 'v1.9.0' });
    using client = await connectNotify(join(dir, 'rec'));
    await client.handleDomainEvent({ domainJSON: json(SECRET_DOMAIN), eventType: 'MODIFIED' });
    await client.handleK8sEvent({ eventJSON: json({ involvedObject: {}, message: `token=${SECRET}` }) });
    expect(recorder.messages).toBe(3);
  }
  await server.stop(0);
  expect(readdirSync(join(out, 'connections'))).toEqual(['notify-conn1.bin', 'notify-conn1.server.bin']);
  expect(holding(SECRET)).toEqual([]);
});

test('a connection that is no HTTP/2 passes, and nothing of it is kept', async () => {
  const to = join(dir, 'echo');
  const server = createServer((socket) => socket.pipe(socket));
  await new Promise<void>((resolve) => server.listen(to, resolve));
  {
    await using recorder = await startRecorder({ listen: join(dir, 'rec'), to, out, release: 'v1.9.0' });
    const socket = connectSocket(join(dir, 'rec'));
    socket.end(SECRET.repeat(1_000));
    const chunks: Buffer[] = [];
    for await (const chunk of socket) chunks.push(chunk as Buffer);
    expect(Buffer.concat(chunks).toString()).toBe(SECRET.repeat(1_000));
    expect(recorder.connections).toBe(1);
  }
  server.close();
  expect(holding(SECRET)).toEqual([]);
  expect(readFileSync(join(out, 'timeline.json'), 'utf8')).toContain('it does not begin as HTTP/2 does');
});

test('a client whose server is not there is cut off, and the next one served', async () => {
  await using recorder = await startRecorder({
    listen: join(dir, 'rec'),
    to: join(dir, 'none'),
    out,
    release: 'v1.9.0',
  });
  for (let i = 1; i <= 2; i += 1) {
    const socket = connectSocket(join(dir, 'rec'));
    socket.on('error', () => undefined);
    await new Promise<void>((resolve) => socket.once('close', () => resolve()));
    expect(recorder.connections).toBe(i);
  }
});

test.each<[string, () => string, string]>([
  ['a folder that holds something', () => dir, 'name an empty folder'],
  ['a file', () => import.meta.filename, 'cannot be made'],
])('nothing is recorded into %s', async (_title, place, text) => {
  writeFileSync(join(dir, 'old.json'), '{}');
  const options = { listen: join(dir, 'rec'), to: join(dir, 'none'), out: place(), release: 'v1.9.0' };
  await expect(startRecorder(options)).rejects.toThrow(text);
});

test('nothing but a socket is replaced by the one of the recorder', async () => {
  const listen = join(dir, 'precious');
  writeFileSync(listen, 'data');
  const started = startRecorder({ listen, to: join(dir, 'none'), out, release: 'v1.9.0' });
  await expect(started).rejects.toThrow('is there and is no socket');
  expect(readFileSync(listen, 'utf8')).toBe('data');
});
