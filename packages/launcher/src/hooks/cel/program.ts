import type { Checked } from './checker.ts';
import { checkExpression } from './checker.ts';
import { readDomain } from './domain-reader.ts';
import { writeDomain } from './domain-writer.ts';
import { evaluate } from './evaluator.ts';
import { createFunctions } from './functions.ts';
import { mergeStruct } from './merge.ts';
import { typeName } from './operators.ts';
import { CelError } from './report.ts';
import { DOMAIN_TYPE, Schema, VMI_TYPE } from './schema.ts';
import type { Node } from './syntax.ts';
import { parseExpression } from './syntax.ts';
import type { CelType } from './types.ts';
import { formatType } from './types.ts';
import type { CelValue, TimeValue } from './values.ts';
import { CelFailure, StructValue } from './values.ts';
import { readVmi } from './vmi-reader.ts';
import { CostExceeded } from './cost.ts';

/** What one expression may cost. */
const COST_LIMIT = 10_000_000;

/** Evaluates the expressions of plugins for one VMI. */
export interface PluginExpressions {
  /** @throws {CelError} when the expression is wrong, no condition, or has no value. */
  condition(expression: string, domainXml: string): boolean;
  /** Returns the changed domain. @throws {CelError} when the expression is wrong, makes no domain, or does not fit. */
  mutation(expression: string, domainXml: string): string;
}

/**
 * Creates the environment of plugins' expressions: `vmi` and `domainSpec`, with the fields of KubeVirt's and libvirtxml's Go
 * types, which expressions can make too.
 *
 * @param vmi as parsed from JSON.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/plugins/cel/evaluator.go
 */
export function createPluginExpressions(vmi: unknown, costLimit = COST_LIMIT): PluginExpressions {
  const schema = new Schema();
  const functions = createFunctions();
  const epoch = functions.call('timestamp', undefined, ['1970-01-01T00:00:00Z']) as TimeValue;
  const variables = new Map<string, CelType>([
    ['vmi', { kind: 'struct', name: schema.struct(VMI_TYPE).celName }],
    ['domainSpec', { kind: 'struct', name: schema.struct(DOMAIN_TYPE).celName }],
  ]);
  const vmiValue = readVmi(schema, functions, vmi);

  function compile(expression: string): Checked & { readonly node: Node } {
    return told('compiling expression', () => {
      const node = parseExpression(expression);
      return { node, ...checkExpression({ schema, functions, variables }, expression, node) };
    });
  }

  function run({ node, references }: Checked & { readonly node: Node }, domain: StructValue): CelValue {
    const values = new Map<string, CelValue>([
      ['vmi', vmiValue],
      ['domainSpec', domain],
    ]);
    return told('evaluating expression', () =>
      evaluate({ schema, functions, epoch, costLimit }, node, references, values),
    );
  }

  return {
    condition(expression, domainXml) {
      const compiled = compile(expression);
      if (compiled.type.kind !== 'bool') {
        throw new CelError(`condition must return bool, got ${formatType(compiled.type)}`);
      }
      return run(compiled, readDomain(schema, domainXml)) === true;
    },
    mutation(expression, domainXml) {
      const compiled = compile(expression);
      const domain = readDomain(schema, domainXml);
      const made = run(compiled, domain);
      if (!(made instanceof StructValue) || !made.isSparse) {
        throw new CelError(`mutation must return a Domain object, got ${typeName(made)}`);
      }
      return writeDomain(
        schema,
        told('merging mutation result', () => mergeStruct(schema, domain, made)),
      );
    },
  };
}

function told<T>(doing: string, work: () => T): T {
  try {
    return work();
  } catch (caught) {
    if (caught instanceof RangeError) throw new CelError(`${doing}: ${caught.message}`, { cause: caught });
    if (!(caught instanceof CelError || caught instanceof CelFailure || caught instanceof CostExceeded)) throw caught;
    throw new CelError(`${doing}: ${caught.message}`, { cause: caught });
  }
}
