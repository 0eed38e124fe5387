import {
  DomainCreateFlags,
  DomainFDAssociateFlags,
  DomainUndefineFlagsValues,
  ErrorDomain,
  ErrorNumber,
} from '../../gen/constants.gen.ts';
import { daemonError } from '../errors.ts';
import { domainOf } from './context.ts';
import type { CallHandlers } from './context.ts';

const ASSOCIATE_FLAGS = DomainFDAssociateFlags.SECLABEL_RESTORE | DomainFDAssociateFlags.SECLABEL_WRITABLE;

/** Define, start, stop and what lies between. */
export const lifecycleCalls: CallHandlers = {
  DOMAIN_DEFINE_XML: ({ xml }, { hypervisor }) => ({ dom: hypervisor.define(xml).ref }),
  DOMAIN_DEFINE_XML_FLAGS: ({ xml }, { hypervisor }) => ({ dom: hypervisor.define(xml).ref }),
  DOMAIN_CREATE_XML: ({ xml_desc, flags }, { hypervisor }) => {
    return { dom: hypervisor.createTransient(xml_desc, (flags & DomainCreateFlags.START_PAUSED) !== 0).ref };
  },
  DOMAIN_FD_ASSOCIATE: (args, context) => {
    const { session, descriptors } = context;
    if (descriptors === 0) {
      throw daemonError(ErrorNumber.INVALID_ARG, ErrorDomain.DOMAIN, 'nfds in virDomainFDAssociate must not be zero');
    }
    const unknown = args.flags & ~ASSOCIATE_FLAGS;
    if (unknown !== 0) {
      const text = `unsupported flags (0x${unknown.toString(16)}) in function qemuDomainFDAssociate`;
      throw daemonError(ErrorNumber.INVALID_ARG, ErrorDomain.QEMU, text);
    }
    domainOf(args, context).takeDescriptors(args.name, descriptors, session);
  },
  DOMAIN_CREATE: (args, context) => domainOf(args, context).start(false),
  DOMAIN_CREATE_WITH_FLAGS: (args, context) => {
    const domain = domainOf(args, context);
    domain.start((args.flags & DomainCreateFlags.START_PAUSED) !== 0);
    return { dom: domain.ref };
  },
  DOMAIN_SUSPEND: (args, context) => domainOf(args, context).suspend(),
  DOMAIN_RESUME: (args, context) => domainOf(args, context).resume(),
  DOMAIN_SHUTDOWN: (args, context) => domainOf(args, context).requestShutdown(),
  DOMAIN_SHUTDOWN_FLAGS: (args, context) => domainOf(args, context).requestShutdown(),
  DOMAIN_REBOOT: (args, context) => {
    const domain = domainOf(args, context);
    domain.assertActive();
    if (domain.behaviour.onShutdown !== 'ignore')
      domain.host.schedule(0, () => domain.isActive && domain.rebootFromGuest());
  },
  DOMAIN_RESET: (args, context) => domainOf(args, context).assertActive(),
  DOMAIN_DESTROY: (args, context) => domainOf(args, context).destroy(),
  DOMAIN_DESTROY_FLAGS: (args, context) => domainOf(args, context).destroy(),
  DOMAIN_UNDEFINE: (args, context) => context.hypervisor.undefine(domainOf(args, context)),
  DOMAIN_UNDEFINE_FLAGS: (args, context) => {
    const domain = domainOf(args, context);
    if ((args.flags & DomainUndefineFlagsValues.CHECKPOINTS_METADATA) !== 0) domain.checkpoints.clear();
    context.hypervisor.undefine(domain);
  },
};
