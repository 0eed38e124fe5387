/** What the launcher tells its handler. Both resolve to undefined when the handler took it, else to why not. */
export interface NotifyPort {
  sendDomainEvent(domainJson: string, eventType: string): Promise<NotifyFailure | undefined>;
  sendK8sEvent(eventJson: string): Promise<NotifyFailure | undefined>;
}

/** Why a message did not get through. */
export interface NotifyFailure {
  /** True when the handler answered and refused: sending it again would not help. */
  readonly isRefused: boolean;
  readonly error: Error;
}
