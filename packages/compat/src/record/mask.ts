import { CMD_RPC_NAMES, CMD_RPCS, cmdV1 } from '@virtwire/shared-proto';
import type { CmdRpc } from '@virtwire/shared-proto';

const MASK = 'masked';
/** Stands for bytes that are no message: neither is this. */
const UNDECODABLE = Uint8Array.of(7);
/** Keys of a VMI and of embedded options whose text is nobody's business. */
const SECRET_KEYS: ReadonlySet<string> = new Set([
  ...['userData', 'userDataBase64', 'networkData', 'networkDataBase64', 'backupKey', 'backupCert', 'caCert'],
  ...['secret', 'header', 'password', 'passphrase', 'sysprep', 'unattendXml', 'authorizedKeys'],
]);

const KEEP_TEXT = JSON as unknown as { rawJSON(text: string): unknown };
/** Annotations that hold secrets, or a whole VMI with its secrets. */
const SECRET_ANNOTATIONS: ReadonlySet<string> = new Set([
  'kubectl.kubernetes.io/last-applied-configuration',
  'kubevirt.io/ignitiondata',
]);

/** JSON text with the values of secret keys masked and all else as it was; text that is no JSON is masked as a whole. */
function maskJson(text: string): string {
  if (text === '') return text;
  let maskCount = 0;
  const mask = (key: string, value: unknown, context?: { readonly source?: string }): unknown => {
    const isMasked = SECRET_KEYS.has(key) || SECRET_ANNOTATIONS.has(key);
    if (isMasked && typeof value === 'string' && value !== '') {
      maskCount += 1;
      return MASK;
    }
    // Numbers of 64 bits do not fit into numbers of JavaScript.
    return typeof value === 'number' && context?.source !== undefined ? KEEP_TEXT.rawJSON(context.source) : value;
  };
  try {
    const masked = JSON.stringify(JSON.parse(text, mask));
    return maskCount > 0 ? masked : text;
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
    // Nobody can say what is in it.
    return UNDECODABLE;
  }
}

/** An answer without what is secret in it: what a command in the guest printed. */
export function maskResponse(path: string, bytes: Uint8Array): Uint8Array {
  if (path !== '/kubevirt.cmd.v1.Cmd/Exec') return bytes;
  try {
    const response = cmdV1.ExecResponse.decode(bytes);
    return cmdV1.ExecResponse.encode({ ...response, stdOut: response.stdOut === '' ? '' : MASK }).finish();
  } catch {
    return UNDECODABLE;
  }
}
