export { openHistory, type SchemaHistory } from './history.ts';
export { compareReleases, lineOf } from './release.ts';
export type {
  FieldHistory,
  FieldType,
  FileHistory,
  Historic,
  MessageHistory,
  RpcHistory,
  RpcShape,
  Stretch,
} from './types.ts';
