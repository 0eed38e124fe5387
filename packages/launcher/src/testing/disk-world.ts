import {
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { createLogger } from '@virtwire/telemetry';

import { DEFAULT_DOMAIN_PATHS, type ImageInfo } from '../converter/circumstances.ts';
import { type ImageInfoJson, imageInfoFromJson } from '../converter/circumstances-json.ts';
import type { DiskDeps, DiskPaths } from '../disks/ports.ts';

/** A tool that was run, with paths as in the pod. */
export interface ToolRun {
  readonly exec: string;
  readonly args: readonly string[];
  readonly exitCode?: number;
  readonly media?: Readonly<Record<string, string>>;
  readonly modes?: Readonly<Record<string, string>>;
}

/** What a world starts with. */
export interface DiskWorldSetup {
  readonly files?: Readonly<
    Record<
      string,
      { readonly content?: string; readonly size?: number; readonly dir?: boolean; readonly block?: boolean }
    >
  >;
  readonly failingTools?: readonly string[];
  readonly qemuImgInfo?: Readonly<Record<string, ImageInfoJson>>;
  readonly hasDirectIo?: boolean;
}

/** A pod's file system below a temporary directory, with recorded tools. */
export interface DiskWorld extends Disposable {
  readonly root: string;
  readonly deps: DiskDeps;
  readonly runs: ToolRun[];
  /** Takes the temporary directory out of a text. */
  readonly inPod: (text: string) => string;
}

const DEFAULT_INFO: ImageInfo = {
  format: 'qcow2',
  backingFile: '',
  virtualSize: 10_737_418_240,
  actualSize: 1_048_576,
};

/** Creates a world. Tools write what they are asked to write, a few bytes of it. */
export function createDiskWorld(setup: DiskWorldSetup): DiskWorld {
  // Short, since sockets below it must have names of less than 108 bytes.
  const root = mkdtempSync(join(tmpdir(), 'vw-'));
  const inPod = (text: string): string =>
    text.replaceAll(root, '').replaceAll(/cloud-init-data\/\S*\/data(?=$|["\s])/g, '<dir>');
  for (const [path, file] of Object.entries(setup.files ?? {})) addFile(join(root, path), file);
  const runs: ToolRun[] = [];
  const paths = Object.fromEntries(
    Object.entries({
      ...DEFAULT_DOMAIN_PATHS,
      imageVolumeDir: '/var/run/kubevirt-image-volume',
      kernelBootDir: '/var/run/kubevirt-kernel-boot',
      serviceAccountDir: '/var/run/secrets/kubernetes.io/serviceaccount/',
    }).map(([name, path]) => [name, root + path]),
  ) as unknown as DiskPaths;
  mkdirSync(paths.containerDiskDir, { recursive: true });
  const owner = statSync(root);
  const deps: DiskDeps = {
    paths,
    qemuUser: { uid: owner.uid, gid: owner.gid },
    log: createLogger('virt-launcher', { destination: { write: () => undefined } }),
    tools: {
      run: async (exec, args) => {
        const isFailing = setup.failingTools?.some((tool) => tool === exec || tool === `${exec} ${args[0] ?? ''}`);
        runs.push({ exec, args: args.map(argInPod(root)), ...(isFailing ? { exitCode: 1 } : {}), ...mediaOf(args) });
        const output = outputOf(args);
        if (output !== undefined) writeFileSync(output, args.includes('qcow2') ? 'qcow2' : 'iso');
        if (isFailing) throw new Error('exit status 1');
      },
    },
    images: {
      info: async (path) => {
        if (setup.failingTools?.some((tool) => tool === 'qemu-img' || tool === 'qemu-img info') === true) {
          throw new Error('failed to invoke qemu-img: exit status 1');
        }
        const info = setup.qemuImgInfo?.[path.replace(root, '')];
        return info === undefined ? DEFAULT_INFO : imageInfoFromJson(info);
      },
      hasDirectIo: async () => setup.hasDirectIo ?? true,
      freeBytes: async () => 1n << 40n,
      // What these files take is not what the recorded ones took.
      storedBytes: async () => undefined,
    },
  };
  return { root, deps, runs, inPod, [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }) };
}

function addFile(path: string, file: { content?: string; size?: number; dir?: boolean }): void {
  mkdirSync(file.dir === true ? path : dirname(path), { recursive: true });
  if (file.dir === true) return;
  writeFileSync(path, file.content ?? '');
  if (file.size !== undefined) truncateSync(path, file.size);
  chownSync(path, process.getuid?.() ?? 0, process.getgid?.() ?? 0);
}

function argInPod(root: string): (arg: string) => string {
  return (arg) => {
    const inPod = arg.replaceAll(root, '');
    return /\/cloud-init-data\/.*\/data$/.test(inPod) ? '<dir>' : inPod;
  };
}

function outputOf(args: readonly string[]): string | undefined {
  if (args[0] === '-output') return args[1];
  if (args[0] !== 'create') return undefined;
  return args.find((arg, index) => index > 1 && arg.endsWith('.qcow2') && args[index - 1] !== '-b');
}

/** A file, or those of a directory, as they would be found on an image. */
function contentsOf(name: string, path: string): readonly (readonly [string, string])[] {
  if (!statSync(path).isDirectory()) return [[name, readFileSync(path, 'utf8')]];
  return readdirSync(path).flatMap((entry) => contentsOf(join(name, entry), join(path, entry)));
}

/** Files that an ISO image would hold. */
function mediaOf(args: readonly string[]): Pick<ToolRun, 'media' | 'modes'> {
  if (args[0] !== '-output') return {};
  if (args.includes('-graft-points')) {
    const grafts = args.filter((arg) => arg.includes('=')).map((arg) => arg.split('=', 2) as [string, string]);
    return { media: Object.fromEntries(grafts.flatMap(([name, path]) => contentsOf(name, path))) };
  }
  const dir = args.at(-1) ?? '';
  const names = readdirSync(dir, { recursive: true, encoding: 'utf8' }).filter((name) =>
    statSync(join(dir, name)).isFile(),
  );
  return {
    media: Object.fromEntries(names.map((name) => [name, readFileSync(join(dir, name), 'utf8')])),
    modes: Object.fromEntries(names.map((name) => [name, `0o${(statSync(join(dir, name)).mode & 0o777).toString(8)}`])),
  };
}
