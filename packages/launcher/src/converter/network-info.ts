import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

import { LauncherError, textOf } from '../errors.ts';
import { type NetworkInfoJson, parseNetworkInfo } from './circumstances-json.ts';
import type { NetworkDeviceInfo } from './circumstances.ts';

/** The pod annotation of that name, as the kubelet writes it. */
const NETWORK_INFO = '/etc/podinfo/network-info';

const FAILURE =
  'failed to create SR-IOV hostdevices: failed to create PCI address pool with network status from file: ';
const POLL_MS = 100;
const TIMEOUT_MS = 1000;

/**
 * Reads which PCI device each network got. The kubelet fills the file some time after the pod's start, so an empty one
 * is read again for a second; one that is not there says nothing.
 *
 * @throws {LauncherError} `ConvertFailed` when the file stays empty or is not JSON.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/device/hostdevice/sriov/hostdev.go
 */
export async function readNetworkInfo(
  path = NETWORK_INFO,
  timeoutMs = TIMEOUT_MS,
  read: (path: string) => Promise<string> = (file) => readFile(file, 'utf8'),
): Promise<readonly NetworkDeviceInfo[]> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const text = await read(path).catch(() => undefined);
    if (text === undefined) return [];
    if (text !== '') return parse(text);
    if (performance.now() >= deadline) {
      throw new LauncherError(
        'ConvertFailed',
        `${FAILURE}context deadline exceeded: file is not populated with network-info`,
      );
    }
    await sleep(POLL_MS);
  }
}

function parse(text: string): readonly NetworkDeviceInfo[] {
  try {
    return parseNetworkInfo(JSON.parse(text) as NetworkInfoJson);
  } catch (error) {
    throw new LauncherError('ConvertFailed', `${FAILURE}${textOf(error)}`, { cause: error });
  }
}
