import type { Domain, DomainSpec, DomainStatus } from '../gen/domain-types.gen.ts';

type Fields = Record<string, unknown>;

/** A domain with nothing set: only the objects that every domain has. */
export function emptyDomain(): Domain {
  return { ObjectMeta: {}, Spec: emptyDomainSpec(), Status: emptyDomainStatus() };
}

/** A libvirt domain with nothing set. */
export function emptyDomainSpec(): DomainSpec {
  return { Memory: {}, OS: { Type: {} }, Devices: {}, Metadata: { KubeVirt: {} }, CPU: {} };
}

/** A domain status with nothing set. */
export function emptyDomainStatus(): DomainStatus {
  return { OSInfo: {}, FSFreezeStatus: {} };
}

/** Gives a sparse object the objects that every domain has; key order stays that of the table. */
export function fillDomain(read: Fields): Domain {
  const { ObjectMeta = {}, Spec = {}, Status = {}, ...identity } = read;
  return {
    ...identity,
    ObjectMeta: ObjectMeta as Fields,
    Spec: fillDomainSpec(Spec as Fields),
    Status: { ...emptyDomainStatus(), ...(Status as Fields) },
  };
}

/** Gives a sparse spec the objects that every domain has. */
export function fillDomainSpec(read: Fields): DomainSpec {
  const { OS = {}, Metadata = {}, ...rest } = read;
  return {
    ...emptyDomainSpec(),
    ...rest,
    OS: { Type: {}, ...(OS as Fields) },
    Metadata: { KubeVirt: {}, ...(Metadata as Fields) },
  };
}
