/** What lies below gRPC: frames and header blocks of HTTP/2, for tools that read or rewrite recorded connections. */
export {
  CLIENT_PREFACE,
  endsHeaders,
  FRAME_HEADER_BYTES,
  type FrameHeader,
  type HeadersPayload,
  parseFrameHeader,
  parseHeadersPayload,
  renderHeaderFrames,
} from './authority/frames.ts';
export { encodeLiterals, type Header, HpackDecoder } from './authority/hpack.ts';
