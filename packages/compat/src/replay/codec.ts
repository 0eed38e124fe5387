import { cmdV1, notifyV1 } from '@virtwire/shared-proto';
import { parseDomainJson, parseVmiJson, renderDomainJson } from '@virtwire/vm-model';
import type { RecordedMessage, SampleDocument } from './captures.ts';

interface Codec {
  encode(message: unknown): { finish(): Uint8Array };
  decode(bytes: Uint8Array): unknown;
}

const PACKAGES: Readonly<Record<string, object>> = { 'kubevirt.cmd.v1': cmdV1, 'kubevirt.notify.v1': notifyV1 };

/** Messages of the version handshake: the answer is a list of packed numbers. */
const INFO: Readonly<Record<string, RegExp>> = {
  'kubevirt.cmd.info.CmdInfoRequest': /^$/,
  'kubevirt.cmd.info.CmdInfoResponse': /^(0a[0-7].*)?$/,
  'kubevirt.notify.info.NotifyInfoRequest': /^$/,
  'kubevirt.notify.info.NotifyInfoResponse': /^(0a[0-7].*)?$/,
};

function codecOf(type: string): Codec | undefined {
  const at = type.lastIndexOf('.');
  const found = (PACKAGES[type.slice(0, at)] as Readonly<Record<string, unknown>> | undefined)?.[type.slice(at + 1)];
  return found as Codec | undefined;
}

const textOf = (bytes: unknown): string => (bytes instanceof Uint8Array ? Buffer.from(bytes).toString('utf8') : '');

/** Reads the JSON that travels inside a message, as far as it is there and is meant to be well-formed. */
function readEmbedded(message: unknown): void {
  const { domain, domainJSON } = message as { domain?: unknown; domainJSON?: unknown };
  const json = typeof domain === 'string' ? domain : textOf(domainJSON);
  if (json.startsWith('{') && json.endsWith('}')) parseDomainJson(json);
  const vmi = (message as { vmi?: { vmiJson?: unknown } }).vmi?.vmiJson;
  const vmiJson = textOf(vmi);
  if (vmiJson.startsWith('{"metadata"') && vmiJson.endsWith('}')) parseVmiJson(vmiJson);
}

const sortedBytes = (bytes: Uint8Array): string => Buffer.from(bytes).sort().toString('hex');

/**
 * Why a message does not come back as it was; undefined when it does.
 *
 * @param isWellFormed false for a message whose JSON the recorded peer refused.
 */
export function codecProblem({ type, base64 }: RecordedMessage, isWellFormed: boolean): string | undefined {
  const bytes = Buffer.from(base64, 'base64');
  const info = INFO[type];
  if (info !== undefined) return info.test(bytes.toString('hex')) ? undefined : `${type}: ${bytes.toString('hex')}`;
  const codec = codecOf(type);
  if (codec === undefined) return `no message ${type} is known`;
  try {
    const message = codec.decode(bytes);
    const again = codec.encode(message).finish();
    // Entries of a map have no order; everything else comes back byte by byte.
    if (!bytes.equals(again) && sortedBytes(bytes) !== sortedBytes(again)) return `${type} is encoded differently`;
    if (isWellFormed) readEmbedded(message);
    return undefined;
  } catch (caught) {
    return `${type}: ${caught instanceof Error ? caught.message : String(caught)}`;
  }
}

/** Why a sample cannot be read, or is read differently once it was printed; undefined when all is well. */
export function sampleProblem({ path, text }: SampleDocument): string | undefined {
  if (!/(^|\/)(domain-\w+|libvirt-domain)\.json$/.test(path)) return undefined;
  try {
    const domain = parseDomainJson(text);
    const printed = renderDomainJson(domain);
    return renderDomainJson(parseDomainJson(printed)) === printed
      ? undefined
      : 'is read differently once it was printed';
  } catch (caught) {
    return caught instanceof Error ? caught.message : String(caught);
  }
}
