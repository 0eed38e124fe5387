import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { infoMethod, serveSidecar, textOfField } from '../../src/testing/hook-sidecar.ts';
import type { SidecarMethods } from '../../src/testing/hook-sidecar.ts';
import { writeFields } from '../../src/testing/protobuf-fields.ts';

/**
 * A hook sidecar, or that of a plugin, as a process. Usage: sidecar-process.ts SOCKET VERSION WORD MARKER.
 *
 * It adds WORD to the kernel's command line and to cloud-init's user data, and makes the file MARKER when the VM has ended.
 * A call fails while there is a file MARKER-breaks-CALL.
 */
const [socketPath = '', version = '', word = '', marker = ''] = process.argv.slice(2);

/** Fails a call that is to fail. */
function check(call: string): void {
  if (existsSync(`${marker}-breaks-${call}`)) throw new Error(`${call} was told to fail`);
}

const addWord = (xml: string): string => xml.replace('</cmdline>', ` ${word}</cmdline>`);

const callbacks = `/kubevirt.hooks.${version}.Callbacks`;
const methods: SidecarMethods = {
  ...infoMethod(
    [version],
    [
      ['OnDefineDomain', 0],
      ...(version === 'v1alpha1' ? [] : [['PreCloudInitIso', 0] as const]),
      ...(version === 'v1alpha3' ? [['Shutdown', 0] as const] : []),
    ],
  ),
  [`${callbacks}/OnDefineDomain`](request) {
    check('OnDefineDomain');
    return writeFields([1, addWord(textOfField(request, 1))]);
  },
  [`${callbacks}/PreCloudInitIso`](request) {
    check('PreCloudInitIso');
    const data = JSON.parse(textOfField(request, 3)) as { UserData: string };
    return writeFields([3, JSON.stringify({ ...data, UserData: `${data.UserData}${word}\n` })]);
  },
  [`${callbacks}/Shutdown`]() {
    writeFileSync(marker, word);
    return Buffer.alloc(0);
  },
  '/kubevirt.hooks.plugins.v1alpha1.DomainHookService/MutateDomain': (request) =>
    writeFields([1, addWord(textOfField(request, 2))]),
};

await serveSidecar(socketPath, methods);
// The launcher is another user.
chmodSync(socketPath, 0o777);
