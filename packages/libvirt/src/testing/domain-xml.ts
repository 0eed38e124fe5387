/** What a test wants of its domain. */
export interface TinyDomain {
  readonly name: string;
  readonly uuid?: string;
  /** Further elements inside `<devices>`. */
  readonly devices?: string;
  /** Adds the guest agent's channel. */
  readonly hasAgentChannel?: boolean;
}

/** XML of the smallest domain that QEMU starts anywhere: TCG, 32 MiB, no disk, a serial console, a screen. */
export function tinyDomainXml({ name, uuid, devices = '', hasAgentChannel = false }: TinyDomain): string {
  const agent = "<channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/></channel>";
  return `<domain type='qemu'>
  <name>${name}</name>${uuid === undefined ? '' : `\n  <uuid>${uuid}</uuid>`}
  <memory unit='MiB'>32</memory>
  <vcpu>1</vcpu>
  <os><type arch='x86_64' machine='q35'>hvm</type><bios useserial='yes'/></os>
  <features><acpi/></features>
  <on_poweroff>destroy</on_poweroff>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    <serial type='pty'/>
    <console type='pty'/>
    <video><model type='vga'/></video>
    ${hasAgentChannel ? agent : ''}${devices}
  </devices>
</domain>
`;
}
