/**
 * What is known of a VMI's launcher.
 *
 * - `responsive`: its socket is there and not marked
 * - `not-initialized`: its pod is there, its socket is not yet, and it still has time
 * - `unresponsive`: pod gone, marked as dead, or it never came up in time
 */
export type LauncherState = 'responsive' | 'not-initialized' | 'unresponsive';
