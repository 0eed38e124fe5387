export type { PipeErrorCode } from './errors.ts';
export { PIPE_ERROR_CODES, PipeError } from './errors.ts';
export type { NotifyPipe, NotifyPipeDeps, NotifyPipeOptions } from './pipe.ts';
export { createNotifyPipe, PIPE_DIRECTORY, PIPE_SOCKET_NAME } from './pipe.ts';
export type { PipeSink } from './sink.ts';
export { createProxySink } from './sink.ts';
