export { HandlerError, HANDLER_ERROR_CODES } from './errors.ts';
export type { HandlerErrorCode } from './errors.ts';
export { DEFAULT_HANDLER_CONFIG } from './config.ts';
export type { HandlerConfig } from './config.ts';
export type { Handler, HandlerDeps } from './handler.ts';
export type { VmiKey, VmiSource, VmiSourceEvent } from './vmi-source/source.ts';
export type { EventRecorder, EventType } from './events/recorder.ts';
export type { Vmi, Domain, ObjectRef, Condition, VmiPhase } from './model.ts';
