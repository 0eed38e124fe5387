/**
 * A 64-bit integer of Go: a number while it is safe, a bigint beyond 2^53.
 *
 * Both kinds print alike; a reader that only compares may write `Number(value)`.
 */
export type Int64 = number | bigint;
