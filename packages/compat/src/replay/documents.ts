import { cmdV1, notifyV1 } from '@virtwire/shared-proto';
import { EMBEDDED, type EmbeddedField } from '@virtwire/vm-model/payloads';
import type { Capture, RecordedMessage } from './captures.ts';

/** A JSON document within a message. */
export interface EmbeddedDocument {
  readonly field: EmbeddedField;
  readonly text: string;
  /** Whether its bytes are the text; Go prints no others. */
  readonly isUtf8: boolean;
}

interface Codec {
  encode(message: unknown): { finish(): Uint8Array };
  decode(bytes: Uint8Array): unknown;
}

const PACKAGES: Readonly<Record<string, object>> = { 'kubevirt.cmd.v1': cmdV1, 'kubevirt.notify.v1': notifyV1 };
const FIELDS = Object.keys(EMBEDDED) as readonly EmbeddedField[];

/** The codec of a message; undefined for one that is not known. */
export function codecOf(type: string): Codec | undefined {
  const at = type.lastIndexOf('.');
  const found = (PACKAGES[type.slice(0, at)] as Readonly<Record<string, unknown>> | undefined)?.[type.slice(at + 1)];
  return found as Codec | undefined;
}

/** The JSON documents of a decoded message, its VMI's and options' included; empty ones are left out. */
export function documentsIn(message: unknown, type: string): readonly EmbeddedDocument[] {
  const name = type.slice(type.lastIndexOf('.') + 1);
  const { vmi, options } = message as { readonly vmi?: unknown; readonly options?: unknown };
  const holders: Readonly<Record<string, unknown>> = { [name]: message, VMI: vmi, VirtualMachineOptions: options };
  return FIELDS.flatMap((field) => {
    const [owner = '', key = ''] = field.split('.');
    const holder = holders[owner];
    const content =
      typeof holder === 'object' && holder !== null ? (holder as Record<string, unknown>)[key] : undefined;
    const text = textOf(content);
    const isUtf8 = !(content instanceof Uint8Array) || Buffer.from(text).equals(content);
    return text === '' ? [] : [{ field, text, isUtf8 }];
  });
}

/** The JSON documents of a call; those of a message that cannot be decoded are left out. */
export function documentsOf({ request, response }: Capture): readonly EmbeddedDocument[] {
  return [request, response].flatMap((message) => (message === undefined ? [] : documentsOfMessage(message)));
}

function documentsOfMessage({ type, base64 }: RecordedMessage): readonly EmbeddedDocument[] {
  try {
    const message = codecOf(type)?.decode(Buffer.from(base64, 'base64'));
    return message === undefined ? [] : documentsIn(message, type);
  } catch {
    return [];
  }
}

function textOf(content: unknown): string {
  if (content instanceof Uint8Array) return Buffer.from(content).toString('utf8');
  return typeof content === 'string' ? content : '';
}
