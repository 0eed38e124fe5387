/** A request that is refused: success=false with this text, or a gRPC error where the release answers one. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
}

/** A request that ends the process, as a Go panic does. */
export class ProcessCrash extends Error {
  override readonly name = 'ProcessCrash';
}

/** A failure that travels as a gRPC status. */
export class StatusFailure extends Error {
  override readonly name = 'StatusFailure';
  readonly code: number;

  constructor(code: number, details: string) {
    super(details);
    this.code = code;
  }
}

/** libvirt's words for a domain that it does not know, as a launcher prints a direct libvirt error. */
export function domainNotFound(domainName: string): Refusal {
  const text = `Domain not found: no domain with matching name '${domainName}'`;
  return new Refusal(`LibvirtError(Code=42, Domain=10, Message='${text}')`);
}
