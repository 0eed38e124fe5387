/**
 * A 64-bit integer of Go: a number while it is safe, a bigint beyond 2^53.
 *
 * Both kinds print alike; a reader that only compares may write `Number(value)`.
 */
export type Int64 = number | bigint;

/** A 32-bit integer of Go. */
export type Int32 = number;

/** A 32-bit integer of Go without sign. */
export type Uint32 = number;

/** A Go uint; none that is used comes near 2^53. */
export type Uint = number;
