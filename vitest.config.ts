import { defineConfig } from 'vitest/config';

// Two kinds of tests, told apart by their file names: unit tests (*.test.ts) are pure and quick,
// integration tests (*.itest.ts) want root, libvirt, QEMU or kernel features and run one file at a time.
const source = '@virtwire/source';
const shared = {
  environment: 'node' as const,
  globals: false,
  hookTimeout: 120_000,
  execArgv: ['--conditions', source],
};

export default defineConfig({
  resolve: { conditions: [source] },
  ssr: { resolve: { conditions: [source], externalConditions: [source] } },
  test: {
    projects: [
      {
        extends: true,
        test: {
          ...shared,
          name: 'unit',
          include: ['packages/*/src/**/*.test.ts', 'scripts/**/*.test.ts'],
          testTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: {
          ...shared,
          name: 'integration',
          include: ['packages/*/integration/**/*.itest.ts', 'e2e/**/*.itest.ts'],
          testTimeout: 240_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
