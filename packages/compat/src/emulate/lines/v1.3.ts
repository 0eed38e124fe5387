import { fact } from '../facts/fact.ts';
import type { LineFacts } from '../facts/line-facts.ts';
import { V1_2 } from './v1.2.ts';

/** Stats come from a cache, and are the text null without a domain. */
export const V1_3: LineFacts = {
  line: 'v1.3',
  release: fact('v1.3.1', 'releases.json lines v1.3 tags'),
  shared: {
    ...V1_2.shared,
    userAgent: fact('grpc-go/1.58.3', 'releases.json lines v1.3 grpcGo'),
    domainKeys: fact({ added: ['DiskSource.Slices', 'FeatureHyperv.Mode'], removed: [] }, 'domain-json.md 8'),
  },
  launcher: {
    ...V1_2.launcher,
    statsWithoutDomain: fact(
      'null',
      'releases.json eras.domainStatsShape; captures v1.3.1/no-disks-info/006-GetDomainStats',
    ),
  },
  handler: V1_2.handler,
};
