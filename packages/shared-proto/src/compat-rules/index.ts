export { type Addition, ADDITIONS } from './additions.ts';
export { adaptOptions, needsAcpiTableObject, needsDisksInfo } from './adapt.ts';
export { CONTENT_RULES, type ContentRule, type RulePlace } from './content-rules.ts';
export { decideEra, NO_FACTS, type PeerFacts, tellsAge } from './decide-era.ts';
export { ANY_ERA, type Era, mayBe, mustBe, renderEra } from './era.ts';
export { renderRules, rulesAsJson } from './render.ts';
export { RPC_RULES, type RpcFallback, type RpcRule } from './rpc-rules.ts';
export { erasOfDomainJson, erasOfOptions, erasOfUserAgent } from './signs.ts';
export { followedRules, type FollowedRule, type RuleUser } from './users.ts';
