import { ADDITIONS } from './additions.ts';
import { CONTENT_RULES, type ContentRule, type RulePlace } from './content-rules.ts';
import { renderEra } from './era.ts';
import { RPC_RULES, type RpcFallback } from './rpc-rules.ts';
import { followedRules, placeName, renderUser } from './users.ts';

/** Oldest peers that the rules speak of. */
const SCOPE =
  'Peers of v0.59 and newer. JSON of handlers and launchers before v0.50, which match keys without regard to case, is out of scope.';

/** Prints all rules for people: what is sent to whom, what happens without it, and what a user would notice. */
export function renderRules(): string {
  const rpcs = RPC_RULES.flatMap(({ rpc, since, fallback, effect }) => [
    `${rpc}  (launchers from ${since} on)`,
    `  without it:  ${renderFallback(fallback)}`,
    `  user sees:   ${effect}`,
    `  followed by: ${userOf(rpc)}`,
  ]);
  return [
    SCOPE,
    '',
    'RPCs that older launchers lack',
    ...rpcs,
    '',
    'Fields and keys',
    ...renderContents(),
    '',
    'Sent to all, of use to newer ones only',
    ...renderAdditions(),
    '',
  ].join('\n');
}

/** The rules as data: one array, for tools. */
export function rulesAsJson(): string {
  return `${JSON.stringify({ rpcs: RPC_RULES, contents: Object.values(CONTENT_RULES), additions: ADDITIONS, users: followedRules() }, undefined, 2)}\n`;
}

const userOf = (rule: string): string => renderUser(followedRules().find((one) => one.rule === rule)?.user);

function renderContents(): readonly string[] {
  return Object.entries<ContentRule>(CONTENT_RULES).flatMap(
    ([id, { place, from, peers, send, elsewhere, fallback, effect }]) => [
      `${renderPlace(place)}  (by the ${from})`,
      `  ${renderEra(peers)}:  ${send}`,
      `  others:      ${elsewhere}`,
      `  without it:  ${fallback}`,
      `  user sees:   ${effect}`,
      `  followed by: ${userOf(id)}`,
    ],
  );
}

function renderAdditions(): readonly string[] {
  return ADDITIONS.flatMap(({ place, from, since, effect }) => [
    `${renderPlace(place)}  (by the ${from})`,
    `  since:       ${since}`,
    `  user sees:   ${effect}`,
    `  followed by: ${userOf(placeName(place))}`,
  ]);
}

function renderPlace(place: RulePlace): string {
  return place.kind === 'field' ? `${place.message}.${place.field}` : `${place.document} JSON ${place.key}`;
}

function renderFallback(fallback: RpcFallback): string {
  switch (fallback.kind) {
    case 'value':
      return `"${fallback.value}" is taken for the answer`;
    case 'goOn':
      return 'logged once, everything else goes on';
    case 'report':
      return 'told in a condition or event, everything else goes on';
    case 'rest':
      return `the REST call answers ${fallback.status}`;
    case 'rpc':
      return `${fallback.rpc} is asked instead`;
  }
}
