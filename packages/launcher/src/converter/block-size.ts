import type { DomainBlockIO, VmiDisk } from '@virtwire/vm-model';

import { LauncherError } from '../errors.ts';
import type { ConverterContext } from './context.ts';
import { backendPath } from './disk-backend.ts';
import type { DiskDraft } from './disks.ts';
import { isOn } from './vmi-traits.ts';

const S390X_MAX = 4096;

/**
 * Block sizes that the guest sees: named ones, or those of the storage.
 *
 * @throws {LauncherError} `ConvertFailed` when they are unknown or too large.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/converter/converter.go, Convert_v1_BlockSize_To_api_BlockIO
 */
export function configureBlockSize(disk: VmiDisk, context: ConverterContext, draft: DiskDraft): void {
  const { custom, matchVolume } = disk.blockSize ?? {};
  if (custom !== undefined) {
    const { logical = 0, physical = 0, discardGranularity } = custom;
    if (context.arch.name === 's390x' && (logical > S390X_MAX || physical > S390X_MAX)) {
      throw new LauncherError(
        'ConvertFailed',
        `custom block size (logical=${String(logical)}, physical=${String(physical)}) exceeds the maximum supported ` +
          `size of ${String(S390X_MAX)} for architecture s390x`,
      );
    }
    draft.BlockIO = {
      LogicalBlockSize: logical,
      PhysicalBlockSize: physical,
      DiscardGranularity: discardGranularity,
    };
  } else if (isOn(matchVolume)) {
    draft.BlockIO = storageBlockSize(context, draft);
  }
}

function storageBlockSize(context: ConverterContext, draft: DiskDraft): DomainBlockIO {
  const doing = 'failed to configure disk with block size detection enabled';
  const path = backendPath(draft);
  if (path === '') throw new LauncherError('ConvertFailed', `${doing}: disk is neither a block device nor a file`);
  const sizes = context.circumstances.blockSizes.get(path) ?? `failed to stat file ${path}: no such file or directory`;
  if (typeof sizes === 'string') throw new LauncherError('ConvertFailed', `${doing}: ${sizes}`);
  if (sizes.logical === 0 && sizes.physical === 0) {
    throw new LauncherError('ConvertFailed', `${doing}: block sizes returned by device ${path} are 0`);
  }
  const logical = sizes.logical || sizes.physical;
  const granularity = sizes.discardGranularity;
  return {
    LogicalBlockSize: logical,
    PhysicalBlockSize: sizes.physical || sizes.logical,
    // The kernel refuses a granularity that is no multiple of the logical size.
    DiscardGranularity: granularity % logical === 0 ? granularity : sizes.physical,
  };
}
