const TEXTS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or directory',
  EACCES: 'permission denied',
  EPERM: 'operation not permitted',
  EEXIST: 'file exists',
  ENOTDIR: 'not a directory',
  EISDIR: 'is a directory',
  ENOSPC: 'no space left on device',
  EROFS: 'read-only file system',
  EIO: 'input/output error',
};

/** A file system failure in the words of the Go launcher, which people and tests match on: `open /a: no such file ...`. */
export function goFileError(caught: unknown, operation: string, path: string): Error {
  const code = caught instanceof Error && 'code' in caught ? String(caught.code) : '';
  const text = TEXTS[code] ?? (caught instanceof Error ? caught.message : String(caught));
  return new Error(`${operation} ${path}: ${text}`, { cause: caught });
}

/** Whether a failure says that a file is not there. */
export function isMissing(caught: unknown): boolean {
  return caught instanceof Error && 'code' in caught && caught.code === 'ENOENT';
}
