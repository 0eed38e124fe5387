import type { Condition, Domain, Vmi } from '../model.ts';
import { findCondition, makeCondition, withConditionLast, withoutCondition } from './conditions.ts';

/** What GetGuestInfo says about the agent itself. */
export interface GuestAgentInfo {
  readonly guestAgentVersion?: string;
  readonly supportedCommands?: readonly { readonly name?: string; readonly enabled?: boolean }[] | null;
}

const CHANNEL = 'org.qemu.guest_agent.0';
const REQUIRED = [
  'guest-ping',
  'guest-get-time',
  'guest-info',
  'guest-shutdown',
  'guest-network-get-interfaces',
  'guest-get-fsinfo',
  'guest-get-host-name',
  'guest-get-users',
  'guest-get-timezone',
  'guest-get-osinfo',
];
const SSH = ['guest-ssh-get-authorized-keys', 'guest-ssh-add-authorized-keys', 'guest-ssh-remove-authorized-keys'];
const SSH_BY_FILES = [
  'guest-exec-status',
  'guest-exec',
  'guest-file-open',
  'guest-file-close',
  'guest-file-read',
  'guest-file-write',
];
const PASSWORD = ['guest-set-user-password'];

/** True when the agent's channel is open. A domain that is off may still say so. */
export function isAgentConnected(domain: Domain | undefined): boolean {
  return (domain?.Spec.Devices.Channels ?? []).some(
    ({ Target: target }) => target?.Name === CHANNEL && target.State === 'connected',
  );
}

function whyUnsupported(vmi: Vmi, info: GuestAgentInfo, versions: readonly string[]): string | undefined {
  const commands = info.supportedCommands ?? [];
  if (commands.length === 0) {
    const version = info.guestAgentVersion ?? '';
    const isKnown = versions.some((pattern) => new RegExp(pattern).test(version));
    return isKnown ? undefined : `Guest agent version '${version}' is not supported`;
  }
  const enabled = new Set(commands.filter((command) => command.enabled === true).map((command) => command.name));
  const hasAll = (names: readonly string[]): boolean => names.every((name) => enabled.has(name));
  if (!hasAll(REQUIRED)) return "This guest agent doesn't support required basic commands";
  const credentials = vmi.spec.accessCredentials ?? [];
  const usesSsh = credentials.some((one) => one.sshPublicKey?.propagationMethod.qemuGuestAgent !== undefined);
  if (usesSsh && !hasAll(SSH) && !hasAll(SSH_BY_FILES)) {
    return "This guest agent doesn't support required public key commands";
  }
  const usesPassword = credentials.some((one) => one.userPassword?.propagationMethod.qemuGuestAgent !== undefined);
  if (usesPassword && !hasAll(PASSWORD)) return "This guest agent doesn't support required password commands";
  return undefined;
}

/**
 * Conditions `AgentConnected` and `AgentVersionNotSupported`.
 *
 * @param info the agent's answer; undefined when it was not asked, which leaves the second condition as it is.
 * @source KubeVirt v1.9.0 pkg/virt-handler/vm.go (updateGuestAgentConditions)
 */
export function agentConditions(
  vmi: Vmi,
  conditions: readonly Condition[],
  isConnected: boolean,
  info: GuestAgentInfo | undefined,
  context: { readonly versions: readonly string[]; readonly now: string },
): readonly Condition[] {
  if (!isConnected) return withoutCondition(conditions, 'AgentConnected');
  const { versions, now } = context;
  const connected =
    findCondition(conditions, 'AgentConnected') === undefined
      ? [...conditions, makeCondition('AgentConnected', 'True', { lastProbeTime: now })]
      : conditions;
  if (info === undefined) return connected;
  const reason = whyUnsupported(vmi, info, versions);
  if (reason === undefined) return withoutCondition(connected, 'AgentVersionNotSupported');
  if (findCondition(connected, 'AgentVersionNotSupported') !== undefined) return connected;
  const unsupported = makeCondition('AgentVersionNotSupported', 'True', { lastProbeTime: now, reason });
  return withConditionLast(connected, unsupported);
}
