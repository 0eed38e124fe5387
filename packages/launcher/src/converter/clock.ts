import type { Domain, DomainTimer, Vmi, VmiClock } from '@virtwire/vm-model';

/** Clock, timers and a fixed TSC frequency. */
export function configureClock(vmi: Vmi, domain: Domain): void {
  const { clock } = vmi.spec.domain;
  if (clock !== undefined) {
    domain.Spec.Clock = { ...offset(clock) };
    const timers = renderTimers(clock);
    if (timers.length > 0) domain.Spec.Clock.Timer = timers;
  }
  const frequency = vmi.status?.topologyHints?.tscFrequency ?? 0;
  if (!needsFixedTsc(vmi) || frequency <= 0) return;
  domain.Spec.Clock ??= {};
  domain.Spec.Clock.Timer = [...(domain.Spec.Clock.Timer ?? []), { Name: 'tsc', Frequency: String(frequency) }];
}

function offset(clock: VmiClock): { Offset?: string; Timezone?: string; Adjustment?: string } {
  if (clock.utc !== undefined) {
    const { offsetSeconds } = clock.utc;
    return { Offset: 'utc', Adjustment: offsetSeconds === undefined ? 'reset' : String(offsetSeconds) };
  }
  return clock.timezone === undefined ? {} : { Offset: 'timezone', Timezone: clock.timezone };
}

function renderTimers(clock: VmiClock): DomainTimer[] {
  const { rtc, pit, kvm, hpet, hyperv } = clock.timer ?? {};
  const timers: DomainTimer[] = [];
  const add = (name: string, timer: { tickPolicy?: string; present?: boolean; track?: string } | undefined): void => {
    if (timer === undefined) return;
    timers.push({
      Name: name,
      TickPolicy: timer.tickPolicy,
      Present: timer.present === false ? 'no' : 'yes',
      Track: timer.track,
    });
  };
  add('rtc', rtc);
  add('pit', pit);
  add('kvmclock', kvm);
  add('hpet', hpet);
  add('hypervclock', hyperv);
  return timers;
}

/** The guest relies on a TSC that never changes its pace. */
function needsFixedTsc(vmi: Vmi): boolean {
  const { cpu, features } = vmi.spec.domain;
  const hasInvariantTsc = cpu?.features?.some(
    ({ name, policy }) => name === 'invtsc' && (policy === 'require' || policy === 'force'),
  );
  // Unlike elsewhere a feature that does not say whether it is on does not count; defaulting makes it say so.
  return hasInvariantTsc === true || features?.hyperv?.reenlightenment?.enabled === true;
}
