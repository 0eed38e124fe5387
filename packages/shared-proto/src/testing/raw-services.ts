import { createRpcHost, type RpcMethod } from '../rpc-host.ts';
import { listenUnix, type RpcServer } from '../server.ts';

const SUCCESS = Buffer.from('0801', 'hex');
const VERSION_ONE = Buffer.from('0a0101', 'hex');

/** Serves answers byte by byte, so that tests can lie; the info service answers `versions` as bytes. */
export function serveBytes(
  socketPath: string,
  answers: Readonly<Record<string, Uint8Array>>,
  versions: Uint8Array = VERSION_ONE,
): Promise<RpcServer> {
  const methods = Object.entries(answers).map(([rpc, bytes]) => method(rpc, () => bytes));
  return serve(socketPath, methods, versions);
}

/** Serves some RPCs with plain success, and hands out the bytes of every request. */
export function recordRequests(
  socketPath: string,
  rpcs: readonly string[],
  onRequest: (rpc: string, bytes: Buffer) => void,
): Promise<RpcServer> {
  const methods = rpcs.map((rpc) =>
    method(rpc, (bytes) => {
      onRequest(rpc, bytes);
      return SUCCESS;
    }),
  );
  return serve(socketPath, methods, VERSION_ONE);
}

function serve(socketPath: string, methods: readonly RpcMethod[], versions: Uint8Array): Promise<RpcServer> {
  const info: RpcMethod = {
    path: '/kubevirt.cmd.info.CmdInfo/Info',
    handle: () => Promise.resolve(versions),
  };
  const limits = { maxConnections: 10, maxCalls: 10, onFault: () => undefined };
  return listenUnix(socketPath, createRpcHost([info, ...methods], limits), limits);
}

function method(rpc: string, answer: (request: Buffer) => Uint8Array): RpcMethod {
  return { path: `/kubevirt.cmd.v1.Cmd/${rpc}`, handle: (bytes) => Promise.resolve(answer(bytes)) };
}
