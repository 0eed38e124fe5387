import * as fs from 'node:fs';
import { createTap, errnoOf, NetworkNamespace, PidHandle, RouteSocket, runTool, writeSysctls } from '@virtwire/host';
import { HandlerError } from '../../errors.ts';
import type { Isolation } from '../parts.ts';
import { advertiseRouter } from './advertise.ts';
import { MARKER_CHAIN } from './masquerade-rules.ts';
import type { NetworkOp } from './plan.ts';
import type { PodKernel, RouterKernel } from './ports.ts';
import { readPodNetwork } from './read-state.ts';

/** Opens the network namespace of a launcher; everything then happens through descriptors of it. */
export function openPodKernel(launcher: Isolation): PodKernel & RouterKernel {
  using process = PidHandle.open(launcher.pid);
  const namespace = NetworkNamespace.open(process.namespacePath('net'));
  try {
    refuseNodeNamespace(namespace, launcher.pid);
  } catch (caught) {
    namespace[Symbol.dispose]();
    throw caught;
  }
  const socket = RouteSocket.open(namespace);
  const indexOf = (name: string): number => {
    const link = socket.link(name);
    if (link === undefined) throw new HandlerError('NotFound', `link ${name} not found`);
    return link.index;
  };
  const execute = createExecutor(namespace, socket, indexOf);
  return {
    identity: `${namespace.inode}:${process.pid}:${process.startTicks}`,
    read: () => readPodNetwork(namespace, socket),
    apply: async (op) => await execute(op),
    async runNft(script) {
      await runTool('nft', ['-f', '-'], { stdin: script, network: namespace });
    },
    async hasRules(family) {
      const listed = await runTool('nft', ['list', 'table', family, 'nat'], { network: namespace, okCodes: [0, 1] });
      return listed.stdout.includes(`chain ${MARKER_CHAIN} `);
    },
    advertiseRouter: (...router) => namespace.run(() => advertiseRouter(...router)),
    [Symbol.dispose]() {
      socket[Symbol.dispose]();
      namespace[Symbol.dispose]();
    },
  };
}

/**
 * A launcher without a network namespace of its own (a wrong pid, or one whose sandbox is not up yet) must never lead to
 * changes of the node's network.
 */
function refuseNodeNamespace(namespace: NetworkNamespace, pid: number): void {
  if (!nodeNamespaces().includes(namespace.inode)) return;
  throw new HandlerError('Invalid', `process ${pid} has no network namespace of its own, its network stays as it is`);
}

/** That of this process and, where it may be looked at, that of the machine's first process. */
function nodeNamespaces(): bigint[] {
  return ['/proc/thread-self/ns/net', '/proc/1/ns/net'].flatMap((path) => {
    try {
      return [fs.statSync(path, { bigint: true }).ino];
    } catch (caught) {
      if (errnoOf(caught) === 'EACCES' || errnoOf(caught) === 'EPERM') return [];
      throw caught;
    }
  });
}

type Executor = (op: NetworkOp) => Promise<void>;

function createExecutor(namespace: NetworkNamespace, socket: RouteSocket, indexOf: (name: string) => number): Executor {
  return async (op) => {
    switch (op.kind) {
      case 'linkAdd':
        return await addLink(socket, op.name, op.type);
      case 'createTap': {
        createTap(namespace, { name: op.name, ...op.tap });
        if (op.tap.mtu !== undefined) await socket.setLink(indexOf(op.name), { mtu: op.tap.mtu });
        return;
      }
      case 'linkDelete':
        return await socket.deleteLink(indexOf(op.name));
      case 'linkRename':
        return await socket.setLink(indexOf(op.name), { name: op.to });
      case 'linkUp':
        return await socket.setLink(indexOf(op.name), { up: true });
      case 'linkDown':
        return await socket.setLink(indexOf(op.name), { up: false });
      case 'linkLearningOff':
        return await socket.setLearning(indexOf(op.name), false);
      case 'linkSetMac':
        return await socket.setLink(indexOf(op.name), { mac: op.mac });
      case 'linkCopyMac':
        return await socket.setLink(indexOf(op.name), { mac: socket.link(op.from)?.mac ?? '' });
      case 'linkSetMtu':
        return await socket.setLink(indexOf(op.name), { mtu: op.mtu });
      case 'linkSetMaster':
        return await socket.setLink(indexOf(op.name), { masterIndex: indexOf(op.bridge) });
      case 'addrAdd':
        return await unless('EEXIST', socket.addAddress(indexOf(op.name), op.cidr));
      case 'addrDelete':
        return await unless('EADDRNOTAVAIL', socket.deleteAddress(indexOf(op.name), op.cidr));
      case 'sysctl':
        return writeSysctls(namespace, [[op.path, op.value]]);
    }
  };
}

/** Without the dummy driver an empty bridge serves: it too can bear name, MAC, MTU and addresses while it is down. */
async function addLink(socket: RouteSocket, name: string, type: 'bridge' | 'dummy'): Promise<void> {
  try {
    await socket.createLink(name, type);
  } catch (caught) {
    // 95, for which Node has the name of its twin.
    if (type !== 'dummy' || errnoOf(caught) !== 'ENOTSUP') throw caught;
    await socket.createLink(name, 'bridge');
  }
}

async function unless(errno: string, work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (caught) {
    if (errnoOf(caught) !== errno) throw caught;
  }
}
