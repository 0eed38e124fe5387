/** The service through which a launcher lets an export server read a pull backup. */
export type { DataChunk, Extent, MapRequest, MapResponse, ReadRequest } from '../gen/kubevirt/nbd/nbd.ts';
export type { NbdClient } from './client.ts';
export { connectNbd } from './client.ts';
export type { NbdHandlers, NbdServer } from './server.ts';
export { serveNbd } from './server.ts';
