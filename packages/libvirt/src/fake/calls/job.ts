import {
  DomainGetJobStatsFlags as StatsFlags,
  DomainJobOperation,
  DomainMigrateFlags,
  ErrorDomain,
  ErrorNumber,
} from '../../gen/constants.gen.ts';
import type { FakeDomain } from '../domain.ts';
import { daemonError, invalidState } from '../errors.ts';
import { startJob } from '../job.ts';
import { childText, parseXml } from '../xml.ts';
import { domainOf } from './context.ts';
import type { CallHandlers } from './context.ts';

/** Jobs: migration, backup, checkpoints, dump, save. */
export const jobCalls: CallHandlers = {
  DOMAIN_GET_JOB_STATS: (args, context) => {
    const domain = domainOf(args, context);
    const wantsCompleted = (args.flags & StatsFlags.COMPLETED) !== 0;
    const job = wantsCompleted ? domain.completedJob : domain.job;
    if (wantsCompleted && (args.flags & StatsFlags.KEEP_COMPLETED) === 0) domain.completedJob = undefined;
    return job === undefined ? { type: 0, params: [] } : { type: job.type, params: job.params() };
  },
  DOMAIN_GET_JOB_INFO: (args, context) => {
    const { job } = domainOf(args, context);
    const sizes = {
      dataTotal: 0n,
      dataProcessed: 0n,
      dataRemaining: 0n,
      memTotal: 0n,
      memProcessed: 0n,
      memRemaining: 0n,
    };
    const files = { fileTotal: 0n, fileProcessed: 0n, fileRemaining: 0n };
    return { type: job?.type ?? 0, timeElapsed: 0n, timeRemaining: 0n, ...sizes, ...files };
  },
  DOMAIN_ABORT_JOB: (args, context) => abortJob(domainOf(args, context)),
  DOMAIN_ABORT_JOB_FLAGS: (args, context) => abortJob(domainOf(args, context)),
  DOMAIN_MIGRATE_PERFORM3_PARAMS: async (args, context) => {
    const domain = domainOf(args, context);
    const isParallel = (args.flags & DomainMigrateFlags.PARALLEL) !== 0;
    if (!isParallel && args.params.some((param) => param.field === 'parallel.connections')) {
      const text = 'invalid argument: Turn parallel migration on to tune it';
      throw daemonError(ErrorNumber.INVALID_ARG, ErrorDomain.QEMU, text);
    }
    const job = startJob(domain, DomainJobOperation.MIGRATION_OUT);
    domain.host.emit('migrationIteration', domain, { iteration: 1 });
    try {
      await job.done;
    } finally {
      if (domain.isActive && domain.completedJob === job && job.type === 3) domain.migratedAway();
      domain.host.emit('jobCompleted', domain, { params: job.params() });
    }
    return { cookie_out: new Uint8Array(0) };
  },
  DOMAIN_MIGRATE_START_POST_COPY: (args, context) => {
    if (domainOf(args, context).job?.operation === DomainJobOperation.MIGRATION_OUT) return;
    throw invalidState('post-copy can only be started while outgoing migration is in progress');
  },
  DOMAIN_MIGRATE_SET_MAX_DOWNTIME: (args, context) => domainOf(args, context).assertActive(),
  DOMAIN_MIGRATE_SET_MAX_SPEED: (args, context) => void domainOf(args, context),
  DOMAIN_CORE_DUMP_WITH_FORMAT: (args, context) => domainOf(args, context).assertActive(),
  DOMAIN_SAVE_FLAGS: (args, context) => domainOf(args, context).destroy(),
  DOMAIN_BACKUP_BEGIN: (args, context) => {
    const domain = domainOf(args, context);
    const job = startJob(domain, DomainJobOperation.BACKUP);
    if (args.checkpoint_xml !== null) addCheckpoint(domain, args.checkpoint_xml);
    const completed = (success: boolean): void => {
      if (domain.isActive)
        domain.host.emit('jobCompleted', domain, {
          params: [...job.params(), { field: 'success', type: 'boolean', value: success }],
        });
    };
    job.done.then(
      () => completed(true),
      () => completed(false),
    );
  },
  DOMAIN_BACKUP_GET_XML_DESC: (args, context) => {
    if (domainOf(args, context).job?.operation === DomainJobOperation.BACKUP)
      return { xml: "<domainbackup mode='push'/>\n" };
    throw daemonError(
      ErrorNumber.NO_DOMAIN_BACKUP,
      ErrorDomain.QEMU,
      'Domain backup job id not found: no domain backup job present',
    );
  },
  DOMAIN_CHECKPOINT_CREATE_XML: (args, context) => {
    const domain = domainOf(args, context);
    return { checkpoint: { name: addCheckpoint(domain, args.xml_desc), dom: domain.ref } };
  },
  DOMAIN_CHECKPOINT_LOOKUP_BY_NAME: (args, context) => {
    const domain = domainOf(args, context);
    if (domain.checkpoints.has(args.name)) return { checkpoint: { name: args.name, dom: domain.ref } };
    throw noCheckpoint(args.name);
  },
  DOMAIN_CHECKPOINT_GET_XML_DESC: ({ checkpoint }, context) => {
    const xml = context.hypervisor.byRef(checkpoint.dom).checkpoints.get(checkpoint.name);
    if (xml === undefined) throw noCheckpoint(checkpoint.name);
    return { xml };
  },
  DOMAIN_CHECKPOINT_DELETE: ({ checkpoint }, context) => {
    if (!context.hypervisor.byRef(checkpoint.dom).checkpoints.delete(checkpoint.name))
      throw noCheckpoint(checkpoint.name);
  },
  DOMAIN_LIST_ALL_CHECKPOINTS: (args, context) => {
    const domain = domainOf(args, context);
    const checkpoints = [...domain.checkpoints.keys()].map((name) => ({ name, dom: domain.ref }));
    return { checkpoints: args.need_results === 0 ? [] : checkpoints, ret: checkpoints.length };
  },
  DOMAIN_GET_LAUNCH_SECURITY_INFO: (args, context) => {
    domainOf(args, context).assertActive();
    return { params: [] };
  },
};

function abortJob(domain: FakeDomain): void {
  if (domain.job === undefined) throw invalidState('no job is active on the domain');
  domain.job.abort();
}

function addCheckpoint(domain: FakeDomain, xml: string): string {
  const name = childText(parseXml(xml), 'name') ?? String(Math.floor(Date.now() / 1_000));
  domain.checkpoints.set(name, xml);
  return name;
}

function noCheckpoint(name: string): Error {
  const text = `Domain checkpoint not found: no domain checkpoint with matching name '${name}'`;
  return daemonError(ErrorNumber.NO_DOMAIN_CHECKPOINT, ErrorDomain.QEMU, text);
}
