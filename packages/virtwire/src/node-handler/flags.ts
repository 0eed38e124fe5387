import { parseArgs } from 'node:util';
import { HANDLER_FLAGS, handlerConfig } from '@virtwire/handler';
import type { HandlerConfig } from '@virtwire/handler';
import { errorText, VirtwireError } from '../errors.ts';

/** What the handler of a node without Kubernetes is started with. */
export interface NodeHandlerFlags {
  readonly nodeName: string;
  readonly shareDir: string;
  readonly privateDir: string;
  readonly podsDir: string;
  /** Directory of the VMIs that it shares with the controller. */
  readonly vmiDir: string;
  /** Directory that events about VMIs are kept in. */
  readonly eventsDir: string;
  /** Guests may be emulated. */
  readonly useEmulation: boolean;
}

/** The command line for these flags; {@link parseNodeHandlerFlags} reads it back. */
export function renderNodeHandlerFlags(flags: NodeHandlerFlags): string[] {
  return [
    ...['--hostname-override', flags.nodeName],
    ...['--kubevirt-share-dir', flags.shareDir],
    ...['--kubevirt-private-dir', flags.privateDir],
    ...['--kubelet-pods-dir', flags.podsDir],
    ...['--vmi-dir', flags.vmiDir],
    ...['--events-dir', flags.eventsDir],
    ...(flags.useEmulation ? ['--use-emulation'] : []),
  ];
}

/** Flags as they were read, with the handler's own settings from all of virt-handler's flags. */
export interface ParsedNodeHandlerFlags extends NodeHandlerFlags {
  readonly config: HandlerConfig;
}

/** @throws {VirtwireError} `Usage` for a flag that is unknown, missing or wrong. */
export function parseNodeHandlerFlags(argv: readonly string[]): ParsedNodeHandlerFlags {
  const text = { type: 'string' } as const;
  try {
    const { values } = parseArgs({
      args: [...argv],
      options: {
        ...HANDLER_FLAGS,
        'vmi-dir': text,
        'events-dir': text,
        'use-emulation': { type: 'boolean' },
      },
    });
    const required = (name: keyof typeof values): string => {
      const value = values[name];
      if (typeof value === 'string') return value;
      throw new VirtwireError('Usage', `--${name} is missing`);
    };
    return {
      nodeName: required('hostname-override'),
      shareDir: required('kubevirt-share-dir'),
      privateDir: required('kubevirt-private-dir'),
      podsDir: required('kubelet-pods-dir'),
      vmiDir: required('vmi-dir'),
      eventsDir: required('events-dir'),
      useEmulation: values['use-emulation'] === true,
      config: handlerConfig(values),
    };
  } catch (caught) {
    throw new VirtwireError('Usage', `node-handler: ${errorText(caught)}`, { cause: caught });
  }
}
