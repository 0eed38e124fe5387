import { rulesCommand } from '../schema/rules-command.ts';
import { schemaCommand } from '../schema/schema-command.ts';
import { runHandlerAdapter, runLauncherAdapter } from './adapters.ts';
import { matrixCommand } from './matrix-command.ts';
import { probeCommand } from './probe-command.ts';
import type { CompatProcess } from './process.ts';
import { recordCommand } from './record-command.ts';
import { replayCommand } from './replay-command.ts';

/** One command of `virtwire compat`. */
export interface CompatCommand {
  readonly usage: string;
  /** One line, for the list of commands. */
  readonly summary: string;
  /** What the summary leaves out; sentences, one per line. */
  readonly details: readonly string[];
  /** Options with what they mean. */
  readonly options: readonly (readonly [option: string, meaning: string])[];
  /** What each exit code says. */
  readonly exits: { readonly fine: string; readonly finding: string };
  readonly run: (argv: readonly string[], io: CompatProcess) => Promise<number>;
}

const ENDED = { fine: 'it ended as it was told to', finding: 'never' };

/** Every command of `virtwire compat`, by name. */
export const COMMANDS: Readonly<Record<string, CompatCommand>> = {
  matrix: {
    usage: 'matrix [OPTIONS]',
    summary: 'new handler with the launcher of every release, handler of every release with new launcher',
    details: ['Each cell is one scenario of one pair, from first start to downgrade.'],
    options: [
      ['--only handler|launcher', 'only one side as the new one'],
      ['--releases v1.3,v1.9', 'only these release lines'],
      ['--scenarios first-start,kill', 'only these scenarios'],
      ['--new-handler CMD', 'your handler instead of virtwire’s'],
      ['--new-launcher CMD', 'your launcher instead of virtwire’s'],
      ['--junit F, --json F, --html F', 'reports'],
      ['--concurrency N', 'cells at a time'],
      ['--quiet', 'print failed cells only'],
    ],
    exits: { fine: 'no cell failed', finding: 'a cell failed' },
    run: matrixCommand,
  },
  schema: {
    usage: 'schema [--against v1.3,v1.9.0|all] [--json] PATH',
    summary: 'proto files or a descriptor set: what breaks for peers of which release',
    details: [
      'PATH is a folder of .proto files, a whole KubeVirt tree, one .proto file, or a descriptor set. Of one file, only the',
      'services in it are compared.',
    ],
    options: [
      ['--against RELEASE,…|all', 'releases or lines to compare with; default: all from v0.59 on'],
      ['--json', 'print JSON'],
    ],
    exits: { fine: 'nothing breaks', finding: 'something breaks' },
    run: schemaCommand,
  },
  rules: {
    usage: 'rules [--json]',
    summary: 'what is sent to peers of which age, and what happens without it',
    details: [],
    options: [['--json', 'print JSON']],
    exits: { fine: 'printed', finding: 'never' },
    run: rulesCommand,
  },
  replay: {
    usage: 'replay DIR…',
    summary: 'recorded traffic: every message decodes, comes back equal, and gets an equivalent answer',
    details: [
      'DIR is a folder in the format of KubeVirt captures or what record wrote, or a .ndjson.br bundle of one.',
      'Broken files are listed and the rest is replayed.',
    ],
    options: [],
    exits: { fine: 'all is well', finding: 'a file is broken, or a message is taken differently' },
    run: replayCommand,
  },
  probe: {
    usage: 'probe --socket S [--as handler|launcher] [--release v1.6] [--unsafe [--vmi F] [--scratch DIR]] [--json]',
    summary: 'what a live launcher (or, as a launcher, a live notify server) does with every RPC',
    details: [
      'Without --unsafe nothing is sent that could stop or change a VM. With it, a VM is started, paused, frozen, changed,',
      'dumped, reset, killed and removed; as a launcher, events about a VM are sent.',
    ],
    options: [
      ['--socket S', 'launcher-sock of a pod, or domain-notify.sock with --as launcher'],
      ['--as handler|launcher', 'whom to play; default: handler'],
      ['--release v1.6', 'the release line that the peer should be: an RPC of it that is missing is a finding'],
      ['--unsafe', 'lead a VM through the whole contract'],
      ['--vmi F', 'the VM for that, as JSON; default: one without disks and network'],
      ['--scratch DIR', 'where the launcher may put a memory dump; default: /var/run/kubevirt'],
      ['--json', 'print JSON'],
    ],
    exits: { fine: 'the peer keeps the contract', finding: 'it deviates, or lacks an RPC of its release' },
    run: probeCommand,
  },
  record: {
    usage: 'record --listen S --to S --out DIR [--release v1.6.1]',
    summary: 'stand between a live handler and launcher and record what they say, secrets masked',
    details: ['SIGTERM or Ctrl-C ends it.'],
    options: [
      ['--listen S', 'the socket to make; the client is to connect here'],
      ['--to S', 'the socket of the server'],
      ['--out DIR', 'where the recording goes'],
      ['--release v1.6.1', 'the release of the launcher, for the record'],
    ],
    exits: ENDED,
    run: recordCommand,
  },
  'run-handler': {
    usage: 'run-handler',
    summary: "this version's handler as --new-handler of another version's matrix",
    details: [],
    options: [],
    exits: ENDED,
    run: (_argv, io) => runHandlerAdapter(io),
  },
  'run-launcher': {
    usage: 'run-launcher [FLAGS OF VIRT-LAUNCHER]',
    summary: "this version's launcher as --new-launcher of another version's matrix",
    details: [],
    options: [],
    exits: ENDED,
    run: runLauncherAdapter,
  },
};
