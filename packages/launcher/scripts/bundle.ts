/**
 * Packs the launcher into one file for images and sandboxes: `node -C @virtwire/source scripts/bundle.ts [OUT]`,
 * default `dist-bin/virt-launcher.mjs` beside package.json. The source map lies beside it, so that `pos` in log lines
 * names the source when node runs with `--enable-source-maps`.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { build } from 'esbuild';
import type { SourceMap } from './thin-source-map.ts';
import { thinSourceMap } from './thin-source-map.ts';

const PACKAGE = join(import.meta.dirname, '..');

/** Node flags that the launcher is shipped with: a small heap that is given back. */
const NODE_FLAGS = [
  ...['--max-semi-space-size=1', '--max-old-space-size=96', '--optimize-for-size', '--single-threaded-gc'],
  ...['--v8-pool-size=1', '--expose-gc', '--no-warnings'],
];

const target = resolve(process.argv[2] ?? join(PACKAGE, 'dist-bin/virt-launcher.mjs'));
const launch = join(dirname(target), 'virt-launcher');

await build({
  entryPoints: [join(PACKAGE, 'src/main.ts')],
  outfile: target,
  bundle: true,
  platform: 'node',
  target: 'node24',
  format: 'esm',
  conditions: ['@virtwire/source'],
  sourcemap: true,
  sourcesContent: false,
  minifySyntax: true,
  legalComments: 'none',
  // A native addon: found beside the bundle or in the image's node_modules.
  external: ['koffi'],
  // Packages of the CommonJS kind ask for node's own modules by require.
  banner: {
    js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);",
  },
});

const mapFile = `${target}.map`;
const isOurs = (source: string): boolean => !source.includes('node_modules');
writeFileSync(mapFile, JSON.stringify(thinSourceMap(JSON.parse(readFileSync(mapFile, 'utf8')) as SourceMap, isOurs)));
writeFileSync(
  launch,
  `#!/bin/sh\nexec node ${NODE_FLAGS.join(' ')} --enable-source-maps "$(dirname "$0")/virt-launcher.mjs" "$@"\n`,
  { mode: 0o755 },
);
process.stdout.write(`${target}\n`);
