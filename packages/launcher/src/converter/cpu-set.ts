/** Parses the kernel's list format: `0-3,8`. */
export function parseCpuSet(text: string): readonly number[] {
  const cpus: number[] = [];
  for (const part of text.split(',').filter((range) => range !== '')) {
    const [first = NaN, last = first] = part.split('-').map(Number);
    if (!Number.isInteger(first) || !Number.isInteger(last)) throw new Error(`${JSON.stringify(text)} is no CPU list`);
    for (let cpu = first; cpu <= last; cpu++) cpus.push(cpu);
  }
  return cpus;
}
