/** What stands for a secret. */
export const MASK = 'masked';

const KEEP_TEXT = JSON as unknown as { rawJSON(text: string): unknown };
/** JSON within JSON, within JSON: nobody nests deeper. */
const MAX_DEPTH = 4;

/**
 * Keys whose text is nobody's business, in any case: cloud-init and sysprep data, passwords, keys, certificates, what
 * SEV injects. Names of Secrets are not secret, and are objects or end in `Name`.
 */
const SECRET_KEYS: readonly RegExp[] = [
  /user_?data(base64)?$/i,
  /network_?data(base64)?$/i,
  /pass(word|wd|phrase)$/i,
  /^(secret|header|session|dhcert|credentials?|token)$/i,
  /(access|api|private|backup|ssh|host)_?keys?$/i,
  /(backup|ca|client)_?cert$/i,
  /(secret|bearer|auth|access)_?token$/i,
  /authorized_?keys$/i,
  /^(sysprep|unattend(xml)?|autounattend(\.xml)?|ignition(data|config)?)$/i,
];
/** Annotations that hold secrets, or a whole object with its secrets. */
const SECRET_ANNOTATIONS: readonly string[] = [
  'kubectl.kubernetes.io/last-applied-configuration',
  'kubevirt.io/ignitiondata',
];
/** Lists of names and values of which nobody knows what they hold. */
const NAMED_VALUES = /^(env|qemuenv|httpheaders|envvars)$/i;
/** Lists of words of a command; the first one is a program. */
const COMMANDS = /^(args|command)$/i;

/** Texts that are secret wherever they stand. */
const SECRET_TEXTS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z0-9 ]*(PRIVATE KEY|CERTIFICATE)-----[^]*?(-----END [A-Z0-9 ]*-----|$)/g, MASK],
  [/\b(ssh-(rsa|dss|ed25519)|ecdsa-sha2-\S+|sk-\S+@openssh\.com) [A-Za-z0-9+/=]{16,}/g, `$1 ${MASK}`],
  [/(\/\/)[^/@\s"']+@/g, `$1${MASK}@`],
  [/\b((?:pass(?:word|wd|phrase)?|secret|token|api_?key|auth)\s*[=:]\s*)[^\s,;"'\\]+/gi, `$1${MASK}`],
  [/(\bsecret,(?:[^\s]*,)?data=)[^\s,]+/gi, `$1${MASK}`],
  [/(io\.systemd\.credential[^=]*=)[^]*/g, `$1${MASK}`],
];

/** Text without what looks like a secret. */
export function maskText(text: string): string {
  return SECRET_TEXTS.reduce((masked, [pattern, replacement]) => masked.replace(pattern, replacement), text);
}

/** JSON text with its secrets masked and all else as it was; text that is no JSON is masked as a whole. */
export function maskJson(text: string): string {
  if (text.trim() === '') return text;
  try {
    return maskParsed(text, 0);
  } catch {
    return MASK;
  }
}

/** @throws {SyntaxError} for text that is no JSON. */
function maskParsed(text: string, depth: number): string {
  // Numbers of 64 bits do not fit into numbers of JavaScript.
  const keepNumbers = (_key: string, value: unknown, context?: { readonly source?: string }): unknown =>
    typeof value === 'number' && context?.source !== undefined ? KEEP_TEXT.rawJSON(context.source) : value;
  const value = JSON.parse(text, keepNumbers) as unknown;
  const changes = { count: 0 };
  const masked = maskValue('', value, depth, changes);
  return changes.count > 0 ? JSON.stringify(masked) : text;
}

function maskValue(key: string, value: unknown, depth: number, changes: { count: number }): unknown {
  if (typeof value === 'string') return maskString(key, value, depth, changes);
  if (typeof value !== 'object' || value === null || isRaw(value)) return value;
  if (Array.isArray(value)) return value.map((item: unknown, i) => maskItem(key, item, i, depth, changes));
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, maskValue(name, item, depth, changes)]));
}

function maskItem(key: string, item: unknown, index: number, depth: number, changes: { count: number }): unknown {
  const isNamed = NAMED_VALUES.test(key) && typeof item === 'object' && item !== null;
  if (isNamed) {
    const fields = Object.entries(item).map(([name, value]) => {
      const isValue = /^value$/i.test(name) && typeof value === 'string' && value !== '';
      return [name, isValue ? replaced(changes) : (value as unknown)];
    });
    return Object.fromEntries(fields);
  }
  const isArgument = COMMANDS.test(key) && index > 0 && typeof item === 'string' && item !== '';
  return isArgument ? replaced(changes) : maskValue(key, item, depth, changes);
}

function maskString(key: string, text: string, depth: number, changes: { count: number }): string {
  if (text === '') return text;
  if (SECRET_ANNOTATIONS.includes(key) || SECRET_KEYS.some((pattern) => pattern.test(key))) return replaced(changes);
  const inner = /^\s*[[{]/.test(text) ? maskInner(text, depth) : undefined;
  const masked = inner ?? maskText(text);
  if (masked !== text) changes.count += 1;
  return masked;
}

/** JSON within a text of JSON; undefined for what only looks like it. */
function maskInner(text: string, depth: number): string | undefined {
  if (depth >= MAX_DEPTH) return MASK;
  try {
    return maskParsed(text, depth + 1);
  } catch {
    return undefined;
  }
}

function replaced(changes: { count: number }): string {
  changes.count += 1;
  return MASK;
}

const isRaw = (value: object): boolean => (JSON as unknown as { isRawJSON(value: unknown): boolean }).isRawJSON(value);
