import type { Vmi, Volume } from '@virtwire/vm-model';

import { configImage } from '../converter/volume-paths.ts';
import { LauncherError, textOf } from '../errors.ts';
import { diskError, writeEmptyImage } from './files.ts';
import { listDirectory, writeConfigIso } from './iso.ts';
import type { DiskDeps } from './ports.ts';
import { nonEmpty } from '../converter/non-empty.ts';

const DEFAULT_LABEL = 'cfgdata';
const SYSPREP_LABEL = 'unattendCD';
const SYSPREP_FILES = new Set(['autounattend.xml', 'unattend.xml']);

interface Kind {
  readonly failure: string;
  /** Made for disks alone; others for every volume, as a machine looks for answers wherever they may be. */
  readonly isForDisks: boolean;
  readonly label: (volume: Volume) => string | undefined;
  readonly source: (volume: Volume, deps: DiskDeps) => string;
  readonly matches: (volume: Volume) => boolean;
}

/** In the order in which the model makes them. */
const KINDS: readonly Kind[] = [
  {
    failure: 'creating config map disks failed: ',
    isForDisks: true,
    matches: (volume) => volume.configMap !== undefined,
    label: (volume) => volume.configMap?.volumeLabel,
    source: (volume, { paths }) => `${paths.privateDir}/config-map/${volume.name}`,
  },
  {
    failure: 'creating secret disks failed: ',
    isForDisks: true,
    matches: (volume) => volume.secret !== undefined,
    label: (volume) => volume.secret?.volumeLabel,
    source: (volume, { paths }) => `${paths.privateDir}/secret/${volume.name}`,
  },
  {
    failure: 'creating sysprep disks failed: ',
    isForDisks: false,
    matches: ({ sysprep }) => sysprep?.configMap !== undefined || sysprep?.secret !== undefined,
    label: () => SYSPREP_LABEL,
    source: (volume, { paths }) => `${paths.privateDir}/sysprep/${volume.name}`,
  },
  {
    failure: 'creating DownwardAPI disks failed: ',
    isForDisks: true,
    matches: (volume) => volume.downwardAPI !== undefined,
    label: (volume) => volume.downwardAPI?.volumeLabel,
    source: (volume, { paths }) => `${paths.privateDir}/downwardapi/${volume.name}`,
  },
  {
    failure: 'creating service account disk failed: ',
    isForDisks: true,
    matches: (volume) => volume.serviceAccount !== undefined,
    label: () => undefined,
    source: (_volume, { paths }) => paths.serviceAccountDir,
  },
];

/**
 * Images of config maps, secrets, downward API and service account for the disks that show them, in the order of the
 * disks, and of sysprep answers for every volume of them.
 *
 * @param isMigrationTarget makes empty images of the sizes that the status names; their content comes over the wire.
 * @throws {LauncherError} `DiskFailed` with the model's prefix.
 * @source KubeVirt v1.9.0 pkg/config
 */
export async function writeConfigDisks(deps: DiskDeps, vmi: Vmi, isMigrationTarget: boolean): Promise<void> {
  for (const kind of KINDS) {
    for (const volume of dueVolumes(vmi, kind)) {
      try {
        await writeConfigDisk(deps, vmi, kind, volume, isMigrationTarget);
      } catch (error) {
        throw diskError(kind.failure, error);
      }
    }
  }
}

function dueVolumes({ spec }: Vmi, { matches, isForDisks }: Kind): readonly Volume[] {
  const volumes = (spec.volumes ?? []).filter(matches);
  if (!isForDisks) return volumes;
  return (spec.domain.devices.disks ?? []).flatMap((disk) => volumes.find(({ name }) => name === disk.name) ?? []);
}

async function writeConfigDisk(
  deps: DiskDeps,
  vmi: Vmi,
  kind: Kind,
  volume: Volume,
  isMigrationTarget: boolean,
): Promise<void> {
  const image = configImage(deps.paths, volume);
  if (image === undefined) return;
  const source = kind.source(volume, deps);
  const emptyBytes = isMigrationTarget ? volumeSize(vmi, volume.name) : 0;
  if (volume.sysprep !== undefined) await checkSysprep(source);
  // A source that did not record the size leaves it to this pod to make an image of its own.
  if (emptyBytes > 0) await writeEmptyImage(deps, image, emptyBytes);
  else await writeConfigIso(deps, image, nonEmpty(kind.label(volume)) ?? DEFAULT_LABEL, source);
}

/**
 * Size of a generated image on the migration source.
 *
 * @throws {LauncherError} `DiskFailed` when the status does not name it.
 */
export function volumeSize(vmi: Vmi, name: string): number {
  const status = vmi.status?.volumeStatus?.find((volume) => volume.name === name);
  if (status === undefined) throw new LauncherError('DiskFailed', `failed to find the status of volume ${name}`);
  return Number(status.size ?? 0);
}

async function checkSysprep(dir: string): Promise<void> {
  let names: readonly string[];
  try {
    names = await listDirectory(dir);
  } catch (error) {
    const message = 'Error validating that autounattend.xml or unattend.xml have been provided: ';
    throw new LauncherError('DiskFailed', `${message}${textOf(error)}`, { cause: error });
  }
  if (names.some((name) => SYSPREP_FILES.has(name.toLowerCase()))) return;
  throw new LauncherError(
    'DiskFailed',
    'Sysprep drive should contain autounattend.xml or unattend.xml but neither were found.',
  );
}
