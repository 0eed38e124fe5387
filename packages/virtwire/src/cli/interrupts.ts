const NAMES = ['SIGINT', 'SIGTERM'] as const;

/**
 * Takes SIGINT and SIGTERM for as long as a command has something to remove: what they do by themselves would end the
 * process with handler, mounts and links left behind.
 */
export class Interrupts implements Disposable {
  readonly #signals: Pick<NodeJS.Process, 'on' | 'off'>;
  readonly #take = (): void => {
    this.#count += 1;
    this.#listener(this.#count);
  };
  #count = 0;
  #listener: (count: number) => void = () => undefined;

  constructor(signals: Pick<NodeJS.Process, 'on' | 'off'>) {
    this.#signals = signals;
    for (const name of NAMES) signals.on(name, this.#take);
  }

  /** How many came so far. */
  get count(): number {
    return this.#count;
  }

  /** Calls the listener for each signal from now on, and at once for those that came before. */
  listen(listener: (count: number) => void): void {
    this.#listener = listener;
    for (let i = 1; i <= this.#count; i += 1) listener(i);
  }

  [Symbol.dispose](): void {
    for (const name of NAMES) this.#signals.off(name, this.#take);
  }
}
