const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function isForbidden(character: string): boolean {
  const code = character.charCodeAt(0);
  return (code < 0x20 && code !== 0x09 && code !== 0x0a && code !== 0x0d) || code === 0xfffe || code === 0xffff;
}

/** Text as it may stand in XML and HTML, in attributes too; characters that XML forbids become a replacement sign. */
export function escapeText(text: string): string {
  const whole = text.toWellFormed();
  return whole.replace(/[^]/g, (character) => ENTITIES[character] ?? (isForbidden(character) ? '\ufffd' : character));
}
