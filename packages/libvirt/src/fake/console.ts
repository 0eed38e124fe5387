import type { StreamPeer, StreamSource } from './server-stream.ts';

const MAX_RECEIVED_BYTES = 1 << 20;

/** The serial console of a fake domain: one client at a time. */
export class FakeConsole {
  #peer: StreamPeer | undefined;
  #received = Buffer.alloc(0);
  /** Lever: what the guest does with bytes typed into it; default nothing. */
  onInput: (bytes: Buffer) => void = () => undefined;

  get isOpen(): boolean {
    return this.#peer !== undefined;
  }

  /** The last MiB that clients have typed. */
  get received(): Buffer {
    return this.#received;
  }

  /** Lever: the guest prints. Lost when nobody listens. */
  print(text: string): void {
    this.#peer?.send(Buffer.from(text));
  }

  /** The guest is gone: end of data. */
  close(): void {
    this.#peer?.end();
  }

  /** The source of a stream that opens this console; an open one loses it. */
  source(): StreamSource {
    let mine: StreamPeer | undefined;
    return {
      start: (peer) => {
        this.#peer?.end();
        mine = peer;
        this.#peer = peer;
      },
      receive: (bytes) => {
        this.#received = Buffer.concat([this.#received, bytes]).subarray(-MAX_RECEIVED_BYTES);
        this.onInput(bytes);
      },
      closed: () => {
        if (this.#peer === mine) this.#peer = undefined;
      },
    };
  }
}
