/** A change of the product's source text. */
export interface Mutation {
  /** Path below the repository: `packages/handler/src/…`. */
  readonly file: string;
  /** Text that is there once. */
  readonly find: string;
  readonly replace: string;
}

/** Environment variable that tells the preloaded editor of its mutation, as JSON. */
export const MUTATION_VARIABLE = 'VIRTWIRE_MUTATION';

/** @throws {Error} unless the text is a mutation. */
export function parseMutation(text: string): Mutation {
  const { file, find, replace } = JSON.parse(text) as Partial<Mutation>;
  if (file !== undefined && find !== undefined && replace !== undefined) return { file, find, replace };
  throw new Error(`${MUTATION_VARIABLE} holds no mutation: ${text}`);
}
