import type { NodeParts, OptionalParts } from './parts.ts';

const OPTIONAL: Readonly<Record<keyof OptionalParts, true>> = {
  hotplug: true,
  memlock: true,
  cgroup: true,
  cpus: true,
  routers: true,
  downwardMetrics: true,
  migrationProxies: true,
  hooks: true,
};

/** Optional parts that are not there: features that this handler does not have. */
export function missingParts(parts: NodeParts): readonly (keyof OptionalParts)[] {
  return (Object.keys(OPTIONAL) as (keyof OptionalParts)[]).filter((name) => parts[name] === undefined);
}
