import type { HostTopology } from './circumstances.ts';

/** Sockets, cores per socket and threads per core of the guest. */
export interface GuestTopology {
  readonly sockets: number;
  readonly cores: number;
  readonly threads: number;
}

interface Cell {
  readonly fullCores: number[][];
  readonly fragments: number[];
}

/** Outcome of fitting guest cores onto host CPUs. */
export interface FitResult {
  /** Host CPU per vCPU, in vCPU order. */
  readonly hostCpus: readonly number[];
  /** Guest cores that found no place; 0 means success. */
  readonly missingCores: number;
}

/**
 * The exclusive host CPUs of a pod, by NUMA cell and core. Whole cores are handed out first, then
 * left-over threads of one cell, then (relaxed only) left-over threads of any cell.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/converter/vcpu/vcpu.go
 */
export class CpuPool {
  readonly #cells: readonly Cell[];
  readonly #threads: number;
  readonly #isRelaxed: boolean;

  constructor(topology: HostTopology, podCpuSet: readonly number[], threads: number, isRelaxed: boolean) {
    this.#threads = threads;
    this.#isRelaxed = isRelaxed;
    this.#cells = groupByCell(topology, new Set(podCpuSet)).map((cores) => ({
      fullCores: cores.filter((core) => core.length >= threads),
      fragments: cores.filter((core) => core.length < threads).flat(),
    }));
  }

  /** Takes host CPUs for a number of guest cores out of the pool. */
  fitCores(count: number): FitResult {
    const hostCpus: number[] = [];
    let missing = count;
    const takeFrom = (take: (cell: Cell) => readonly number[]): void => {
      for (const cell of this.#cells) {
        while (missing > 0) {
          const taken = take(cell);
          if (taken.length === 0) break;
          hostCpus.push(...taken);
          missing--;
        }
      }
    };
    takeFrom((cell) => this.#takeFullCore(cell));
    takeFrom((cell) => (cell.fragments.length >= this.#threads ? cell.fragments.splice(0, this.#threads) : []));
    if (this.#isRelaxed && missing > 0) missing = this.#fitAnywhere(missing, hostCpus);
    return { hostCpus, missingCores: missing };
  }

  /** Takes one CPU: left-over threads before whole cores, in the first cell that has any. */
  takeThread(): number | undefined {
    const cell = this.#cells.find((c) => c.fragments.length > 0 || c.fullCores.length > 0);
    if (cell === undefined) return undefined;
    if (cell.fragments.length > 0) return cell.fragments.shift();
    const [first, ...rest] = cell.fullCores[0] ?? [];
    this.#putBack(cell, rest);
    return first;
  }

  #takeFullCore(cell: Cell): readonly number[] {
    const core = cell.fullCores[0];
    if (core === undefined) return [];
    this.#putBack(cell, core.slice(this.#threads));
    return core.slice(0, this.#threads);
  }

  #putBack(cell: Cell, rest: number[]): void {
    if (rest.length >= this.#threads) {
      cell.fullCores[0] = rest;
      return;
    }
    cell.fullCores.shift();
    cell.fragments.push(...rest);
  }

  #fitAnywhere(missingCores: number, hostCpus: number[]): number {
    let missingThreads = missingCores * this.#threads;
    for (const cell of this.#cells) {
      const taken = cell.fragments.splice(0, missingThreads);
      hostCpus.push(...taken);
      missingThreads -= taken.length;
    }
    return Math.floor(missingThreads / this.#threads);
  }
}

function groupByCell(topology: HostTopology, available: ReadonlySet<number>): number[][][] {
  const visited = new Set<number>();
  return topology.numaCells.map((cell) => {
    const cores: number[][] = [];
    for (const cpu of cell.cpus) {
      if (visited.has(cpu.id)) continue;
      const siblings = cpu.siblings.length === 0 ? [cpu.id] : cpu.siblings;
      for (const sibling of siblings) visited.add(sibling);
      cores.push(siblings.filter((sibling) => available.has(sibling)));
    }
    return cores;
  });
}
