import { mkdirSync } from 'node:fs';
import type { Vmi } from '@virtwire/vm-model';
import type { SandboxPort } from '../controller/controller.ts';
import { launcherCommand } from '../controller/launcher-command.ts';
import { keyOf } from '../controller/store.ts';
import { VirtwireError } from '../errors.ts';
import { findVmFiles } from '../manifest/files.ts';
import { manifestError } from '../manifest/problem.ts';
import { launcherDevices } from '../sandbox/devices.ts';
import type { Installation } from '../sandbox/installation.ts';
import { SANDBOX_ROOT } from '../sandbox/installation.ts';
import type { LauncherProgram } from '../sandbox/launcher-bundle.ts';
import { createSandbox, removeSandbox } from '../sandbox/sandbox.ts';
import type { SandboxDeps } from '../sandbox/sandbox.ts';
import { probeLauncher } from './readiness.ts';
import { beginLog, launcherLogOf } from './logs.ts';

/** Annotation of a stored VMI: the manifest that it came from. */
export const MANIFEST_ANNOTATION = 'virtwire.io/manifest';
/** Annotation of a stored VMI that outlives the process that started it. */
export const KEEP_ANNOTATION = 'virtwire.io/keep';

/** What sandboxes of VMs are made with. */
export interface VmSandboxDeps extends SandboxDeps {
  readonly installation: Installation;
  readonly program: LauncherProgram;
  readonly kvmWorks: boolean;
}

/** Host name of a VM's pod: what the VMI asks for, else its name, cut to what a kernel takes. */
function podHostname({ metadata, spec }: Vmi): string {
  return (spec.hostname ?? metadata.name).slice(0, 63).replace(/[-.]+$/, '');
}

/** Makes the sandboxes that VMs run in. */
export function vmSandboxes(deps: VmSandboxDeps): SandboxPort {
  return {
    async create(vmi, podUid) {
      const { metadata } = vmi;
      const file = metadata.annotations?.[MANIFEST_ANNOTATION] ?? metadata.name;
      const files = findVmFiles(vmi, { file, claimsDir: deps.layout.claimsDir });
      const [problem, ...others] = files.problems;
      if (problem !== undefined) throw manifestError([problem, ...others]);
      for (const path of files.toCreate) mkdirSync(path, { recursive: true });
      const command = launcherCommand(vmi, deps.program, { kvmWorks: deps.kvmWorks });
      const logFile = launcherLogOf(deps.layout, keyOf(vmi));
      beginLog(logFile);
      const sandbox = await createSandbox(deps, {
        ...command,
        binDir: deps.program.binDir,
        launcherScript: deps.program.script,
        podUid,
        hostname: podHostname(vmi),
        binds: [{ source: deps.installation.root, destination: SANDBOX_ROOT, readonly: true }, ...files.binds],
        devices: launcherDevices(deps.kvmWorks),
        logFile,
      });
      const keep = metadata.annotations?.[KEEP_ANNOTATION] === 'true';
      return { ...sandbox, vmiUid: metadata.uid, namespace: metadata.namespace, name: metadata.name, keep };
    },
    probe: (podUid, signal) => probeLauncher(deps.layout, podUid, signal),
    remove: (podUid) => removeSandbox(deps, podUid),
  };
}

/** Refuses to go on without root: namespaces, mounts and links need it. */
export function requireRoot(): void {
  if (process.getuid?.() !== 0) throw new VirtwireError('NotRoot', 'running VMs needs root: use sudo');
}
