import { fact } from '../facts/fact.ts';
import type { LineFacts } from '../facts/line-facts.ts';
import { V1_3 } from './v1.3.ts';

/** Handlers stop looking at the legacy socket directory. */
export const V1_4: LineFacts = {
  line: 'v1.4',
  release: fact('v1.4.1', 'releases.json lines v1.4 tags'),
  shared: {
    ...V1_3.shared,
    userAgent: fact('grpc-go/1.65.0', 'releases.json lines v1.4 grpcGo'),
    domainKeys: fact({ added: [], removed: [] }, 'domain-json.md 8'),
  },
  launcher: V1_3.launcher,
  handler: {
    ...V1_3.handler,
    unknownVmiFields: fact(['status.memory.memoryOverhead'], 'captures README facts VMI JSON'),
    socketLookup: fact('pods', 'releases.json eras.handlerCmdSocketLookup'),
  },
};
