import { Duplex } from 'node:stream';

import { AuthorityFilter } from './filter.ts';

type Done = (error?: Error | null) => void;

/**
 * Puts an authority filter in front of a connection that an HTTP/2 server is to serve.
 *
 * @param inner the connection as accepted; it belongs to the result, which closes it.
 * @returns the connection to serve. It fails (and closes `inner`) if the peer breaks the limit of a header block.
 */
export function normaliseAuthority(inner: Duplex): Duplex {
  return new NormalisedConnection(inner);
}

class NormalisedConnection extends Duplex {
  readonly #inner: Duplex;
  readonly #filter = new AuthorityFilter();

  constructor(inner: Duplex) {
    super({ allowHalfOpen: true });
    this.#inner = inner;
    inner.on('data', (chunk: Buffer) => this.#onData(chunk));
    inner.on('end', () => {
      for (const part of this.#filter.end()) this.push(part);
      this.push(null);
    });
    inner.on('error', (error) => this.destroy(error));
    inner.on('close', () => this.#onClose());
    inner.pause();
  }

  override _read(): void {
    this.#inner.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: Done): void {
    this.#inner.write(chunk, done);
  }

  override _writev(chunks: readonly { chunk: Buffer }[], done: Done): void {
    this.#inner.cork();
    const last = chunks.length - 1;
    chunks.forEach(({ chunk }, i) => this.#inner.write(chunk, i === last ? done : undefined));
    this.#inner.uncork();
  }

  override _final(done: Done): void {
    this.#inner.end(() => done());
  }

  override _destroy(error: Error | null, done: Done): void {
    this.#inner.destroy();
    done(error);
  }

  #onData(chunk: Buffer): void {
    if (this.#filter.isTransparent) {
      if (!this.push(chunk)) this.#inner.pause();
      return;
    }
    try {
      const results = this.#filter.push(chunk).map((part) => this.push(part));
      if (results.includes(false)) this.#inner.pause();
    } catch (caught) {
      this.destroy(caught instanceof Error ? caught : new Error(String(caught)));
    }
  }

  /** What came before the end is still read; then nobody is left to talk to. */
  #onClose(): void {
    if (this.readableEnded || this.readableLength === 0) this.destroy();
    else this.once('end', () => this.destroy());
  }
}
