/** The release lines that are emulated, oldest first. v0.59 stands for everything older that still runs somewhere. */
export const RELEASE_LINES = [
  'v0.59',
  'v1.0',
  'v1.1',
  'v1.2',
  'v1.3',
  'v1.4',
  'v1.5',
  'v1.6',
  'v1.7',
  'v1.8',
  'v1.9',
] as const;

/** A minor release line of KubeVirt. */
export type ReleaseLine = (typeof RELEASE_LINES)[number];
