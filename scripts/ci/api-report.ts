// Compares the public API of a package with its committed report, `PACKAGE.api.md`; `--update` writes the report anew.
import { Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor';
import { basename, resolve } from 'node:path';

const args = process.argv.slice(2);
const isUpdate = args.includes('--update');
const projectRoot = args.find((a) => !a.startsWith('--'));
if (projectRoot === undefined) {
  process.stderr.write('usage: api-report.ts PACKAGE_DIR [--update]\n');
  process.exit(2);
}
const folder = resolve(projectRoot);
const config = ExtractorConfig.prepare({
  configObjectFullPath: resolve(folder, 'api-extractor.json'),
  packageJsonFullPath: resolve(folder, 'package.json'),
  configObject: {
    projectFolder: folder,
    mainEntryPointFilePath: resolve(folder, 'dist/index.d.ts'),
    compiler: {
      overrideTsconfig: {
        extends: resolve(import.meta.dirname, '../../tsconfig.base.json'),
        include: [resolve(folder, 'dist/**/*.d.ts')],
      },
    },
    apiReport: {
      enabled: true,
      reportFileName: `${basename(folder)}.api.md`,
      reportFolder: folder,
      reportTempFolder: resolve(folder, 'dist/api'),
    },
    docModel: { enabled: false },
    dtsRollup: { enabled: false },
    tsdocMetadata: { enabled: false },
    newlineKind: 'lf',
    messages: {
      extractorMessageReporting: {
        default: { logLevel: ExtractorLogLevel.Error, addToApiReportFile: false },
        'ae-undocumented': { logLevel: ExtractorLogLevel.None },
        'ae-missing-release-tag': { logLevel: ExtractorLogLevel.None },
        'ae-forgotten-export': { logLevel: ExtractorLogLevel.None },
        'ae-unresolved-link': { logLevel: ExtractorLogLevel.None },
      },
      tsdocMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
    },
  },
});
const result = Extractor.invoke(config, {
  localBuild: isUpdate,
  messageCallback: (message) => {
    if (message.messageId === 'console-compiler-version-notice') message.handled = true;
  },
});
if (result.apiReportChanged && !isUpdate) {
  process.stderr.write(
    `The public API of ${basename(folder)} differs from its report. See dist/api/${basename(folder)}.api.md; ` +
      `if it is meant, run: node scripts/ci/api-report.ts ${projectRoot} --update\n`,
  );
}
process.exit(result.succeeded ? 0 : 1);
