/** A text that says something; Go's empty text is an unset one. */
export function nonEmpty(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}
