/** A stretch of releases: from `since` on, up to but without `until`; undefined = still so in the newest release. */
export interface Stretch {
  readonly since: string;
  readonly until: string | undefined;
}

/** An element of the schema and the releases that have it, oldest first. Most have one stretch. */
export interface Historic {
  readonly name: string;
  readonly presence: readonly Stretch[];
}

/** What an RPC takes and gives in some releases: names of messages of its package. */
export interface RpcShape {
  readonly request: string;
  readonly response: string;
  readonly presence: readonly Stretch[];
}

/** An RPC through all releases. */
export interface RpcHistory extends Historic {
  /** Full name: `kubevirt.cmd.v1.Cmd`. */
  readonly service: string;
  /** Path in HTTP/2: `/kubevirt.cmd.v1.Cmd/Ping`. */
  readonly path: string;
  /** More than one only if the messages changed (FreezeVirtualMachine). */
  readonly shapes: readonly RpcShape[];
}

/** The type of a field: a scalar's keyword, or the name of a message of the same package. */
export type FieldType =
  | { readonly kind: 'singular' | 'repeated'; readonly type: string }
  | { readonly kind: 'map'; readonly key: string; readonly type: string };

/** A field through all releases. No field has ever changed its number or type. */
export interface FieldHistory extends Historic {
  /** The message's name without its package. */
  readonly message: string;
  readonly number: number;
  readonly type: FieldType;
}

/** A message through all releases. */
export interface MessageHistory extends Historic {
  /** Full name: `kubevirt.cmd.v1.VMIRequest`. */
  readonly fullName: string;
  readonly fields: readonly FieldHistory[];
}

/** One of the four proto files, or its part in one release. Elements are in the order of the file. */
export interface FileHistory {
  /** As in KubeVirt's tree: `pkg/handler-launcher-com/cmd/v1/cmd.proto`. */
  readonly path: string;
  readonly package: string;
  readonly goPackage: string;
  readonly service: string;
  readonly rpcs: readonly RpcHistory[];
  readonly messages: readonly MessageHistory[];
  /** Releases whose text differs from that of the release before, with the name of the text; some texts came back. */
  readonly texts: readonly { readonly since: string; readonly textId: string }[];
}
