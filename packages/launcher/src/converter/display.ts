import type { Domain, DomainInput, DomainVideo, Vmi, VmiInput } from '@virtwire/vm-model';

import { LauncherError } from '../errors.ts';
import type { ConverterContext } from './context.ts';
import { nonEmpty } from './non-empty.ts';

const VRAM_KIB = 16_384;

/**
 * Whether the guest has a screen.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/converter/compute/graphics.go
 */
function hasGraphics(vmi: Vmi, context: ConverterContext): boolean {
  return vmi.spec.domain.devices.autoattachGraphicsDevice !== false && !context.isCrossArchitecture;
}

/** Video card and VNC on a unix socket. */
export function configureGraphics(vmi: Vmi, context: ConverterContext, domain: Domain): void {
  if (!hasGraphics(vmi, context)) return;
  const socket = `${context.circumstances.paths.privateDir}/${vmi.metadata.uid}/virt-vnc`;
  domain.Spec.Devices.Video = [videoCard(vmi, context)];
  domain.Spec.Devices.Graphics = [{ Type: 'vnc', Listen: { Type: 'socket', Socket: socket } }];
}

function videoCard(vmi: Vmi, context: ConverterContext): DomainVideo {
  const { video } = vmi.spec.domain.devices;
  if (video !== undefined) return { Model: { Type: video.type, Heads: 1, VRam: VRAM_KIB } };
  if (context.arch.name !== 'amd64') return { Model: { Type: 'virtio', Heads: 1 } };
  const isEfi = vmi.spec.domain.firmware?.bootloader?.efi !== undefined;
  if (isEfi && context.hasBochsDisplay) return { Model: { Type: 'bochs', Heads: 1 } };
  return { Model: { Type: 'vga', Heads: 1, VRam: VRAM_KIB } };
}

/**
 * Tablets that the VMI names, and what an architecture without a PS/2 mouse needs besides.
 *
 * @throws {LauncherError} `ConvertFailed` for an unknown type or bus.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/converter/compute/input_device.go
 */
export function configureInputs(vmi: Vmi, context: ConverterContext, domain: Domain): void {
  const inputs = (vmi.spec.domain.devices.inputs ?? []).map(renderInput);
  // The model leaves out the screen of a foreign guest, but not its inputs.
  if (vmi.spec.domain.devices.autoattachGraphicsDevice !== false) inputs.push(...automaticInputs(inputs, context));
  if (inputs.length > 0) domain.Spec.Devices.Inputs = inputs;
}

function renderInput(input: VmiInput): DomainInput {
  const bus = nonEmpty(input.bus) ?? 'usb';
  if (bus !== 'usb' && bus !== 'virtio') {
    throw new LauncherError('ConvertFailed', `input contains unsupported bus ${bus}`);
  }
  if (input.type !== 'tablet') {
    throw new LauncherError('ConvertFailed', `input contains unsupported type ${input.type}`);
  }
  const result: DomainInput = { Type: input.type, Bus: bus, Alias: { Name: input.name, UserDefined: true } };
  if (bus === 'virtio') result.Model = 'virtio';
  return result;
}

function automaticInputs(inputs: readonly DomainInput[], context: ConverterContext): DomainInput[] {
  switch (context.arch.name) {
    case 'arm64': {
      const keyboard = { Type: 'keyboard', Bus: 'usb' };
      return inputs.some(({ Type }) => Type === 'tablet') ? [keyboard] : [{ Type: 'tablet', Bus: 'usb' }, keyboard];
    }
    case 's390x':
      return [{ Type: 'keyboard', Bus: 'virtio' }];
    case 'amd64':
      return [];
  }
}

/** Serial port behind a unix socket, and the console on it. */
export function configureSerial(vmi: Vmi, context: ConverterContext, domain: Domain): void {
  if (vmi.spec.domain.devices.autoattachSerialConsole === false) return;
  const path = `${context.circumstances.paths.privateDir}/${vmi.metadata.uid}/virt-serial0`;
  domain.Spec.Devices.Serials = [
    {
      Type: 'unix',
      Target: { Port: 0 },
      Source: { Mode: 'bind', Path: path },
      ...(context.hasSerialConsoleLog ? { Log: { File: `${path}-log`, Append: 'on' } } : {}),
    },
  ];
  domain.Spec.Devices.Consoles = [{ Type: 'pty', Target: { Type: 'serial', Port: 0 } }];
}
