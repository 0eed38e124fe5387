import type { Domain, Vmi } from '@virtwire/vm-model';

import type { ConverterContext } from './context.ts';
import { annotationOf } from './vmi-traits.ts';

const IGNITION_ANNOTATION = 'kubevirt.io/ignitiondata';
const DEBUG_VERBOSITY = 5;

/** Arguments that libvirt has no element for: ignition data and the firmware's debug port. */
export function configureQemuCommandLine(vmi: Vmi, context: ConverterContext, domain: Domain): void {
  const { paths, logVerbosity } = context.circumstances;
  const { name, namespace } = vmi.metadata;
  const args: string[] = [];
  if (annotationOf(vmi, IGNITION_ANNOTATION)?.includes('ignition') === true) {
    const file = `${paths.ephemeralDir}/ignition-data/${namespace}/${name}/data.ign`;
    args.push('-fw_cfg', `name=opt/com.coreos/config,file=${file}`);
  }
  if (context.arch.hasFirmwareDebug && logVerbosity > DEBUG_VERBOSITY) {
    args.push('-chardev', `file,id=firmwarelog,path=${paths.privateDir}/QEMUSeaBiosDebugPipe`);
    args.push('-device', 'isa-debugcon,iobase=0x402,chardev=firmwarelog');
  }
  if (args.length > 0) domain.Spec.QEMUCmd = { QEMUArg: args.map((value) => ({ Value: value })) };
}
