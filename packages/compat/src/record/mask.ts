import { CMD_RPC_NAMES, CMD_RPCS, cmdV1 } from '@virtwire/shared-proto';
import type { CmdRpc } from '@virtwire/shared-proto';

const MASK = 'masked';
/** Keys of a VMI and of embedded options whose text is nobody's business. */
const SECRET_KEYS: ReadonlySet<string> = new Set([
  ...['userData', 'userDataBase64', 'networkData', 'networkDataBase64', 'backupKey', 'backupCert', 'caCert'],
  ...['secret', 'header', 'password', 'passphrase', 'sysprep', 'unattendXml', 'authorizedKeys'],
]);

function maskValue(key: string, value: unknown): unknown {
  if (SECRET_KEYS.has(key) && typeof value === 'string' && value !== '') return MASK;
  return value;
}

/** JSON text with the values of secret keys masked; text that is no JSON is masked as a whole. */
function maskJson(text: string): string {
  if (text === '') return text;
  try {
    return JSON.stringify(JSON.parse(text, maskValue));
  } catch {
    return MASK;
  }
}

const isRpc = (name: string): name is CmdRpc => (CMD_RPC_NAMES as readonly string[]).includes(name);

function maskFields(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(maskJson(Buffer.from(value).toString('utf8')));
  if (Array.isArray(value) || typeof value !== 'object' || value === null || value instanceof Map) return value;
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, maskFields(field)]));
}

/** A request without what is secret in it: cloud-init data, keys, and what a command in the guest gets. */
export function maskRequest(path: string, bytes: Uint8Array): Uint8Array {
  const rpc = path.slice(path.lastIndexOf('/') + 1);
  if (!path.startsWith('/kubevirt.cmd.v1.Cmd/') || !isRpc(rpc)) return bytes;
  try {
    if (rpc === 'Exec') {
      const request = cmdV1.ExecRequest.decode(bytes);
      return cmdV1.ExecRequest.encode({ ...request, Args: request.Args.map(() => MASK) }).finish();
    }
    const codec = CMD_RPCS[rpc].request as {
      decode(bytes: Uint8Array): unknown;
      encode(message: unknown): { finish(): Uint8Array };
    };
    const request = codec.decode(bytes);
    const masked = codec.encode(maskFields(request)).finish();
    return masked;
  } catch {
    // Not decodable, so nobody can say what is in it.
    return new Uint8Array();
  }
}
