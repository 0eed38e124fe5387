import * as fs from 'node:fs';
import * as path from 'node:path';
import type { CallResult, CmdResponse, CmdRpc } from '@virtwire/shared-proto';
import {
  ANY_ERA,
  decideEra,
  erasOfDomainJson,
  NO_FACTS,
  renderEra,
  tellsAge,
} from '@virtwire/shared-proto/compat-rules';
import type { Era, PeerFacts } from '@virtwire/shared-proto/compat-rules';
import type { Logger } from '@virtwire/telemetry';
import { errorText } from '../errors.ts';

/**
 * How old each launcher is, as far as its answers tell. It is kept in a file per VMI UID, so that a handler knows it
 * again after a restart; KubeVirt's handler does not look at these files.
 */
export interface LauncherEras {
  /** Releases that a launcher may be of. */
  eraOf(uid: string): Era;
  /** Says which socket a UID's launcher has; what is known of a launcher at another socket is dropped. */
  begin(uid: string, socketFile: string): void;
  /** Learns from the end of a call. */
  noteResult(uid: string, rpc: CmdRpc, result: CallResult<CmdResponse<CmdRpc>>): void;
  /** Learns from the first domain that a launcher sends. */
  noteDomain(uid: string, domainJson: string): void;
  forget(uid: string): void;
}

interface Known {
  readonly socketFile: string;
  readonly facts: PeerFacts;
}

const UID = /^[0-9A-Za-z-]{1,64}$/;
const MAX_FILE_BYTES = 16_384;

/**
 * Opens `<privateDir>/launcher-eras`. Files of launchers that have no ghost record any more are removed.
 *
 * @param isKnown says whether a UID has a ghost record.
 */
export function openLauncherEras(privateDir: string, isKnown: (uid: string) => boolean, log: Logger): LauncherEras {
  const directory = path.join(privateDir, 'launcher-eras');
  fs.mkdirSync(directory, { recursive: true, mode: 0o755 });
  const launchers = load(directory, isKnown, log);
  const learn = (uid: string, facts: PeerFacts): void => {
    const present = launchers.get(uid);
    if (present === undefined) return;
    const known = { ...present, facts };
    launchers.set(uid, known);
    store(directory, uid, known, log);
    log.debug({ uid }, `the launcher is of ${renderEra(decideEra(facts))}`);
  };
  return {
    eraOf: (uid) => {
      const known = launchers.get(uid);
      return known === undefined ? ANY_ERA : decideEra(known.facts);
    },
    begin(uid, socketFile) {
      if (!UID.test(uid) || launchers.get(uid)?.socketFile === socketFile) return;
      launchers.set(uid, { socketFile, facts: NO_FACTS });
    },
    noteResult(uid, rpc, result) {
      if (result.ok && rpc === 'GetDomain' && 'domain' in result.value) this.noteDomain(uid, result.value.domain);
      const facts = launchers.get(uid)?.facts;
      const list = listOf(rpc, result);
      if (facts === undefined || list === undefined || facts[list].includes(rpc)) return;
      learn(uid, { ...facts, [list]: [...facts[list], rpc] });
    },
    noteDomain(uid, domainJson) {
      const facts = launchers.get(uid)?.facts;
      if (facts === undefined || facts.bounds.length > 0) return;
      const bounds = erasOfDomainJson(domainJson);
      if (bounds.length > 0) learn(uid, { ...facts, bounds });
    },
    forget(uid) {
      if (launchers.delete(uid)) fs.rmSync(path.join(directory, uid), { force: true });
    },
  };
}

/** Where an answer belongs; undefined when it tells no age. */
function listOf(rpc: CmdRpc, result: CallResult<unknown>): 'served' | 'missing' | undefined {
  if (!tellsAge(rpc)) return undefined;
  if (result.ok || result.error.code === 'Failed' || result.error.code === 'Rpc') return 'served';
  return result.error.code === 'Unimplemented' ? 'missing' : undefined;
}

function load(directory: string, isKnown: (uid: string) => boolean, log: Logger): Map<string, Known> {
  const launchers = new Map<string, Known>();
  for (const name of fs.readdirSync(directory)) {
    const file = path.join(directory, name);
    const known = isKnown(name) ? read(file, log) : undefined;
    if (known === undefined) fs.rmSync(file, { recursive: true, force: true });
    else launchers.set(name, known);
  }
  return launchers;
}

/** What cannot be read is learned again. */
function read(file: string, log: Logger): Known | undefined {
  try {
    if (fs.statSync(file).size > MAX_FILE_BYTES) throw new Error('the file is too large');
    const parsed = JSON.parse(fs.readFileSync(file, 'utf8')) as unknown;
    if (isKnownShape(parsed)) return parsed;
    throw new Error('a field is missing');
  } catch (error) {
    log.warn({ reason: errorText(error) }, `failed to read what is known of launcher ${path.basename(file)}`);
    return undefined;
  }
}

function isKnownShape(value: unknown): value is Known {
  if (typeof value !== 'object' || value === null) return false;
  const { socketFile, facts } = value as { socketFile?: unknown; facts?: Partial<Record<keyof PeerFacts, unknown>> };
  const isList = (list: unknown, isItem: (item: unknown) => boolean): boolean =>
    Array.isArray(list) && list.every(isItem);
  const isText = (item: unknown): boolean => typeof item === 'string';
  return (
    typeof socketFile === 'string' &&
    isList(facts?.served, isText) &&
    isList(facts?.missing, isText) &&
    isList(facts?.bounds, isEra)
  );
}

function isEra(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { since, until } = value as { since?: unknown; until?: unknown };
  return [since, until].every((bound) => bound === undefined || typeof bound === 'string');
}

function store(directory: string, uid: string, known: Known, log: Logger): void {
  const temporary = path.join(directory, `.${uid}.tmp`);
  try {
    fs.writeFileSync(temporary, JSON.stringify(known), { mode: 0o600 });
    fs.renameSync(temporary, path.join(directory, uid));
  } catch (error) {
    // It only has to be learned again after a restart.
    log.warn({ reason: errorText(error) }, `failed to store what is known of launcher ${uid}`);
  }
}
