import type { Vmi } from '@virtwire/vm-model';

import { objectsAt } from './domain-places.ts';
import { Refusal } from './outcome.ts';

/** Types of what an emulated launcher reads of a VMI. Go refuses the whole object over any other type. */
const TYPES: readonly (readonly [place: string, keys: readonly string[], type: string])[] = [
  ['metadata', ['name', 'namespace', 'uid'], 'string'],
  ['spec', ['terminationGracePeriodSeconds'], 'number'],
  ['spec.domain.cpu', ['cores', 'sockets', 'threads', 'maxSockets'], 'number'],
  ['spec.domain.cpu', ['model'], 'string'],
  ['spec.domain.firmware', ['uuid'], 'string'],
  ['spec.domain.devices.disks.*', ['name'], 'string'],
  ['spec.domain.devices.interfaces.*', ['name', 'macAddress', 'state'], 'string'],
  ['spec.volumes.*', ['name'], 'string'],
  ['status', ['phase'], 'string'],
];

const LISTS: readonly (readonly [place: string, key: string])[] = [
  ['spec', 'volumes'],
  ['spec.domain.devices', 'disks'],
  ['spec.domain.devices', 'interfaces'],
];

/** @throws {Refusal} when a value has another type than the API says. */
export function requireTypes(vmi: Vmi): void {
  for (const [place, keys, type] of TYPES) {
    for (const object of objectsAt(vmi, place)) {
      const wrong = keys.find((key) => isWrong(object[key], type));
      if (wrong !== undefined) throw new Refusal(`${place}.${wrong} is no ${type}`);
    }
  }
  for (const [place, key] of LISTS) {
    const isNoList = objectsAt(vmi, place).some((object) => !Array.isArray(object[key] ?? []));
    if (isNoList) throw new Refusal(`${place}.${key} is no list`);
  }
}

function isWrong(value: unknown, type: string): boolean {
  return value !== undefined && value !== null && typeof value !== type;
}
