import { type Domain, type Vmi, emptyDomain } from '@virtwire/vm-model';

import type { ConverterContext } from './context.ts';
import { configureClock } from './clock.ts';
import { configureControllers } from './controllers.ts';
import { configureCpu } from './cpu.ts';
import { placeDedicatedCpus } from './dedicated-cpus.ts';
import { configureDisks } from './disks.ts';
import { configureGraphics, configureInputs, configureSerial } from './display.ts';
import { configureFeatures } from './features.ts';
import {
  configureHypervisor,
  configureIommuFd,
  configureMetadata,
  configureRebootPolicy,
  defaultArchitecture,
} from './identity.ts';
import { checkGraceRequest, wantsGrace } from './grace.ts';
import { placeGraceDevices } from './grace-placement.ts';
import { configureInterfaces } from './interfaces.ts';
import { configureIoThreads } from './iothreads.ts';
import { configureMemory, configureMemoryBacking } from './memory.ts';
import { placeOnHostNuma } from './numa-placement.ts';
import { configureOs } from './os.ts';
import { placeOnRootComplex } from './pci-devices.ts';
import { configureQemuCommandLine } from './qemu-command-line.ts';
import {
  configureBalloon,
  configureChannels,
  configureFilesystems,
  configureLaunchSecurity,
  configurePanicDevices,
  configureRng,
  configureSound,
  configureTpm,
  configureUsbRedirection,
  configureVsock,
  configureWatchdog,
} from './simple-devices.ts';
import { configureSysinfo } from './sysinfo.ts';
import { annotationOf, hasDedicatedCpus, hasNumaPassthrough } from './vmi-traits.ts';

const ROOT_COMPLEX_ANNOTATION = 'kubevirt.io/placePCIDevicesOnRootComplex';

type Configurator = (vmi: Vmi, context: ConverterContext, domain: Domain) => void;

/** The order decides which error comes first when a VMI has several. */
const CONFIGURATORS: readonly Configurator[] = [
  (vmi, _context, domain) => configureMetadata(vmi, domain),
  configureInterfaces,
  (vmi, _context, domain) => configureTpm(vmi, domain),
  (vmi, _context, domain) => configureVsock(vmi, domain),
  configureLaunchSecurity,
  configureChannels,
  (vmi, _context, domain) => configureClock(vmi, domain),
  configureRng,
  configureInputs,
  configureBalloon,
  configureGraphics,
  (vmi, _context, domain) => configureSound(vmi, domain),
  (_vmi, context, domain) => configureHostDevices(context, domain),
  configureWatchdog,
  configureSerial,
  (vmi, _context, domain) => configurePanicDevices(vmi, domain),
  configureFeatures,
  configureSysinfo,
  configureOs,
  (vmi, _context, domain) => configureFilesystems(vmi, domain),
  configureUsbRedirection,
  configureControllers,
  configureQemuCommandLine,
  configureCpu,
  (vmi, _context, domain) => configureIoThreads(vmi, domain),
  (vmi, _context, domain) => configureMemory(vmi, domain),
  (vmi, _context, domain) => configureRebootPolicy(vmi, domain),
  (_vmi, context, domain) => configureIommuFd(context, domain),
  configureHypervisor,
  (vmi, _context, domain) => configureMemoryBacking(vmi, domain),
  configureDisks,
  placeDevices,
  (_vmi, context, domain) => defaultArchitecture(context, domain),
];

/**
 * Converts a VMI, defaults applied, to the domain that libvirt is to define. Pure and deterministic: what depends on
 * the pod and the machine is in the context.
 *
 * Left to the caller before the define: tap names, MAC and MTU of the network cards, cache and IO modes of the disks,
 * ports for hotplug, hook sidecars.
 *
 * @throws {LauncherError} `ConvertFailed` with KubeVirt's message.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/converter/converter.go
 */
export function convertVmi(vmi: Vmi, context: ConverterContext): Domain {
  const domain = emptyDomain();
  for (const configure of CONFIGURATORS) configure(vmi, context, domain);
  return domain;
}

function configureHostDevices(context: ConverterContext, domain: Domain): void {
  const devices = [...context.genericHostDevices, ...context.gpuHostDevices, ...context.sriovHostDevices];
  // Copies: placement may give them addresses, and the context serves the next conversion too.
  if (devices.length > 0) domain.Spec.Devices.HostDevices = devices.map((device) => ({ ...device }));
}

function placeDevices(vmi: Vmi, context: ConverterContext, domain: Domain): void {
  const { clusterConfig, topology } = context.circumstances.options ?? {};
  checkGraceRequest(vmi, context);
  if (hasDedicatedCpus(vmi)) {
    placeDedicatedCpus(vmi, context, domain);
    if (wantsGrace(context)) {
      const { options, graceHost: facts, hostPciDevices: pciDevices } = context.circumstances;
      return placeGraceDevices(domain.Spec, options?.GraceHostDeviceAliases ?? [], { facts, pciDevices, topology });
    }
    if (clusterConfig?.PCINUMAAwareTopologyEnabled === true && context.arch.hasPciPlacement) {
      placeOnHostNuma(domain.Spec, context.circumstances.hostPciDevices, topology, hasNumaPassthrough(vmi));
    }
  }
  if (context.arch.hasPciPlacement && annotationOf(vmi, ROOT_COMPLEX_ANNOTATION) === 'true') {
    placeOnRootComplex(domain.Spec);
  }
}
