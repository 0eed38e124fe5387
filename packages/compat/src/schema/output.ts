/** Where a command prints its findings. */
export interface Output {
  /** A line of standard output. */
  line(text: string): void;
}
