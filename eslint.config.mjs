import nx from '@nx/eslint-plugin';
import prettier from 'eslint-config-prettier';
import tseslint from 'typescript-eslint';

/** Which layers a layer may import: the table of style.md and ARCHITECTURE.md. */
const layers = [
  { sourceTag: 'pkg:libvirt', onlyDependOnLibsWithTags: ['pkg:libvirt'] },
  { sourceTag: 'layer:protocol', onlyDependOnLibsWithTags: ['layer:protocol'] },
  { sourceTag: 'layer:platform', onlyDependOnLibsWithTags: ['layer:platform'] },
  { sourceTag: 'pkg:notify-pipe-proxy', onlyDependOnLibsWithTags: ['layer:protocol', 'layer:platform'] },
  { sourceTag: 'pkg:launcher', onlyDependOnLibsWithTags: ['layer:protocol', 'layer:platform'] },
  {
    sourceTag: 'pkg:handler',
    onlyDependOnLibsWithTags: ['layer:protocol', 'layer:platform', 'pkg:notify-pipe-proxy'],
  },
  {
    sourceTag: 'layer:product',
    onlyDependOnLibsWithTags: ['layer:protocol', 'layer:platform', 'layer:service', 'layer:product'],
  },
  { sourceTag: 'layer:test', onlyDependOnLibsWithTags: ['*'] },
];

export default tseslint.config(
  {
    ignores: [
      '**/dist/**',
      '**/dist-bin/**',
      '**/gen/**',
      '**/*.gen.ts',
      '**/node_modules/**',
      '**/testdata/**',
      '!scripts/testdata/**',
      '.nx/**',
      '.cache/**',
    ],
  },
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  {
    files: ['**/*.ts'],
    extends: [...tseslint.configs.strictTypeChecked, ...tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    plugins: { '@nx': nx },
    rules: {
      '@nx/enforce-module-boundaries': [
        'error',
        { enforceBuildableLibDependency: false, allow: [], depConstraints: layers },
      ],
      '@typescript-eslint/consistent-type-imports': 'error',
      // What is held with `using` is used by being held.
      '@typescript-eslint/no-unused-vars': ['error', { ignoreUsingDeclarations: true }],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-non-null-assertion': 'error',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      // An async method may fulfil an interface without waiting for anything; a void call may stand as an arrow's body.
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/no-confusing-void-expression': 'off',
      '@typescript-eslint/no-unnecessary-condition': [
        'error',
        { allowConstantLoopConditions: 'only-allowed-literals' },
      ],
      // Keys of wire objects are reached with brackets, so that they stand out from our own names.
      '@typescript-eslint/dot-notation': 'off',
      'max-lines': ['error', { max: 600 }],
      'max-lines-per-function': ['error', { max: 60, skipBlankLines: true, skipComments: true }],
      'no-console': 'error',
      'no-restricted-syntax': [
        'error',
        { selector: 'ExportDefaultDeclaration', message: 'Named exports only.' },
        { selector: 'ExportAllDeclaration', message: 'Name what is exported.' },
        { selector: 'TSEnumDeclaration', message: 'Use a union of literals.' },
      ],
    },
  },
  {
    files: ['**/*.test.ts', '**/*.itest.ts', '**/integration/**/*.ts', 'e2e/**/*.ts'],
    rules: { 'max-lines-per-function': 'off' },
  },
  {
    files: ['*.config.ts'],
    rules: { 'no-restricted-syntax': 'off' },
  },
  prettier,
);
