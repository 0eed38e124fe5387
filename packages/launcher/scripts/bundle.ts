/**
 * Packs the launcher into one file for images and sandboxes: `node -C @virtwire/source scripts/bundle.ts [OUT]`,
 * default `dist-bin/virt-launcher.mjs` beside package.json. Beside it lie the places of its log calls in the sources, for
 * `pos` in log lines, the start script with node's flags, libvirt's hook for incoming migrations, and what evaluates the
 * expressions of plugins.
 */
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { Plugin } from 'esbuild';
import { build } from 'esbuild';
import type { SourceMap } from './log-places.ts';
import { logPlaces } from './log-places.ts';

const PACKAGE = join(import.meta.dirname, '..');

/**
 * Node flags that the launcher is shipped with: a small heap that is given back. Flags that change compiled code are not
 * among them, see src/config/frugal-engine.ts.
 */
const NODE_FLAGS = [
  ...[
    '--max-semi-space-size=1',
    '--max-old-space-size=96',
    '--single-threaded-gc',
    '--v8-pool-size=1',
    '--no-warnings',
  ],
];

const target = resolve(process.argv[2] ?? join(PACKAGE, 'dist-bin/virt-launcher.mjs'));
const launch = join(dirname(target), 'virt-launcher');

/** Few launchers ever meet a peer that compresses, and node's zlib takes as long to load as the rest of gRPC. */
const lateZlib: Plugin = {
  name: 'late-zlib',
  setup(bundler) {
    bundler.onResolve({ filter: /^(node:)?zlib$/ }, ({ namespace }) =>
      namespace === 'late' ? { path: 'node:zlib', external: true } : { path: 'zlib', namespace: 'late' },
    );
    bundler.onLoad({ filter: /^zlib$/, namespace: 'late' }, () => ({
      contents: "module.exports = new Proxy({}, { get: (_, name) => require('node:zlib')[name] });",
    }));
  },
};

const { outputFiles } = await build({
  entryPoints: [join(PACKAGE, 'src/main.ts')],
  outfile: target,
  bundle: true,
  platform: 'node',
  target: 'node24',
  format: 'esm',
  conditions: ['@virtwire/source'],
  write: false,
  sourcemap: 'external',
  sourcesContent: false,
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: 'none',
  // A native addon, found beside the bundle or in the image's node_modules; and what grpc-js has for features not used here.
  external: ['koffi', '@grpc/proto-loader'],
  plugins: [lateZlib],
  // Packages of the CommonJS kind ask for node's own modules by require.
  banner: {
    js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);",
  },
});

function textOf(ending: string): string {
  return outputFiles.find(({ path }) => path.endsWith(ending))?.text ?? '';
}

const program = textOf('.mjs');
mkdirSync(dirname(target), { recursive: true });
writeFileSync(target, program);
const places = logPlaces(program, JSON.parse(textOf('.map')) as SourceMap);
writeFileSync(`${target}.places.json`, JSON.stringify(places));
writeFileSync(launch, `#!/bin/sh\nexec node ${NODE_FLAGS.join(' ')} "$(dirname "$0")/virt-launcher.mjs" "$@"\n`, {
  mode: 0o755,
});
// Programs beside the launcher: libvirt runs the first, the second is a thread of the launcher's when a plugin has expressions.
await build({
  entryPoints: {
    'libvirt-hook-client': join(PACKAGE, 'src/hook-client-main.ts'),
    'cel-worker': join(PACKAGE, 'src/cel-worker-main.ts'),
  },
  outdir: dirname(target),
  outExtension: { '.js': '.mjs' },
  bundle: true,
  platform: 'node',
  target: 'node24',
  format: 'esm',
  conditions: ['@virtwire/source'],
  minify: true,
  legalComments: 'none',
});
copyFileSync(join(PACKAGE, 'scripts/libvirt-hook-client'), join(dirname(target), 'libvirt-hook-client'));
process.stdout.write(`${target}\n`);
