import type { VirtwireErrorCode } from '../errors.ts';

/** Exit codes of the command line, as every `--help` tells them. */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  notReady: 4,
  interrupted: 130,
} as const;

/** The table of exit codes below a command's help. */
export const EXIT_HELP = `
Exit codes:
  0    done
  1    failed: the VM failed, or something on this machine did
  2    wrong usage or a wrong manifest
  3    no such VM
  4    this machine cannot run VMs as it is (see virtwire doctor)
  130  interrupted: before the guest ran, or by force`;

const BY_CODE: Partial<Record<VirtwireErrorCode, number>> = {
  BadManifest: EXIT.usage,
  Usage: EXIT.usage,
  NotFound: EXIT.notFound,
  MissingTool: EXIT.notReady,
  NotRoot: EXIT.notReady,
  Cancelled: EXIT.interrupted,
};

/** The exit code for a failure of this package. */
export function exitCodeOf(code: VirtwireErrorCode): number {
  return BY_CODE[code] ?? EXIT.failed;
}
