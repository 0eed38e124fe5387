import { HISTORY_TEXT } from './history.gen.ts';
import { renderDescriptorSet } from './descriptors.ts';
import { renderProto } from './proto-text.ts';
import { type ReadHistory, readHistory } from './read.ts';
import { compareReleases, lineOf } from './release.ts';
import type { FieldHistory, FileHistory, Historic, MessageHistory, RpcHistory, RpcShape, Stretch } from './types.ts';

/** The schema of every release of KubeVirt from v0.17.0 to v1.9.0. */
export interface SchemaHistory {
  /** All release tags, oldest first. */
  readonly releases: readonly string[];
  /** The four proto files with every element that ever was. */
  readonly files: readonly FileHistory[];
  /** The tag that a text means: `1.3.1`, `v1.3.1`, or the last one of a line: `v1.3`. Undefined if there is none. */
  resolve(text: string): string | undefined;
  /**
   * What a release of any name is in terms of the history: itself, else the newest one that is not newer. That makes a
   * patch release of tomorrow the newest known of its line, and `v1.9.0-rc.1` what was before v1.9.0.
   */
  nearest(release: string): string | undefined;
  /** An RPC by name or path; `Info` of both info services has to be named by path. */
  rpc(nameOrPath: string): RpcHistory | undefined;
  /** A message by name or full name; of names that two packages have, the cmd service's comes first. */
  message(name: string): MessageHistory | undefined;
  field(message: string, field: string): FieldHistory | undefined;
  /** True if a release's schema has the element. */
  has(element: { readonly presence: readonly Stretch[] }, release: string): boolean;
  /** True if a release serves an RPC. False for RPCs and releases that never were. */
  hasRpc(release: string, nameOrPath: string): boolean;
  hasField(release: string, message: string, field: string): boolean;
  /** The messages of an RPC in a release. */
  shape(release: string, nameOrPath: string): RpcShape | undefined;
  /** The four files as they were in a release, without what it did not have. */
  filesOf(release: string): readonly FileHistory[];
  /** The text of the four files of a release by their paths, without comments. */
  protoTexts(release: string): ReadonlyMap<string, string>;
  /**
   * A serialised `google.protobuf.FileDescriptorSet` of the four files of a release: the bytes that
   * `protoc --descriptor_set_out` writes.
   */
  descriptorSet(release: string): Uint8Array;
}

/** Opens the history. It is read from its text each time (some 3 ms): keep what it gives. */
export function openHistory(): SchemaHistory {
  return new History(readHistory(HISTORY_TEXT));
}

class History implements SchemaHistory {
  readonly releases: readonly string[];
  readonly files: readonly FileHistory[];
  readonly #rpcs: ReadonlyMap<string, RpcHistory>;
  readonly #messages: ReadonlyMap<string, MessageHistory>;
  readonly #places: ReadonlyMap<string, number>;

  constructor({ releases, files }: ReadHistory) {
    this.releases = releases;
    this.files = files;
    this.#places = new Map(releases.map((release, place) => [release, place]));
    const rpcs = files.flatMap((file) => file.rpcs);
    const messages = files.flatMap((file) => file.messages);
    this.#rpcs = new Map([...firstOf(rpcs), ...rpcs.map((rpc) => [rpc.path, rpc] as const)]);
    this.#messages = new Map([...firstOf(messages), ...messages.map((one) => [one.fullName, one] as const)]);
  }

  resolve(text: string): string | undefined {
    const name = text.startsWith('v') ? text : `v${text}`;
    if (this.#places.has(name)) return name;
    return this.releases.findLast((release) => lineOf(release) === name);
  }

  nearest(release: string): string | undefined {
    return this.resolve(release) ?? this.releases.findLast((known) => compareReleases(known, release) <= 0);
  }

  rpc(nameOrPath: string): RpcHistory | undefined {
    return this.#rpcs.get(nameOrPath);
  }

  message(name: string): MessageHistory | undefined {
    return this.#messages.get(name);
  }

  field(message: string, field: string): FieldHistory | undefined {
    return this.message(message)?.fields.find(({ name }) => name === field);
  }

  has(element: { readonly presence: readonly Stretch[] }, release: string): boolean {
    const at = this.#places.get(release);
    if (at === undefined) return false;
    return element.presence.some(({ since, until }) => this.#place(since) <= at && at < this.#place(until));
  }

  hasRpc(release: string, nameOrPath: string): boolean {
    const rpc = this.rpc(nameOrPath);
    return rpc !== undefined && this.has(rpc, release);
  }

  hasField(release: string, message: string, field: string): boolean {
    const found = this.field(message, field);
    return found !== undefined && this.has(found, release);
  }

  shape(release: string, nameOrPath: string): RpcShape | undefined {
    return this.rpc(nameOrPath)?.shapes.find((shape) => this.has(shape, release));
  }

  filesOf(release: string): readonly FileHistory[] {
    const present = <T extends { readonly presence: readonly Stretch[] }>(elements: readonly T[]): readonly T[] =>
      elements.filter((element) => this.has(element, release));
    return this.files.map((file) => ({
      ...file,
      rpcs: present(file.rpcs).map((rpc) => ({ ...rpc, shapes: present(rpc.shapes) })),
      messages: present(file.messages).map((message) => ({ ...message, fields: present(message.fields) })),
    }));
  }

  protoTexts(release: string): ReadonlyMap<string, string> {
    return new Map(this.filesOf(release).map((file) => [file.path, renderProto(file)]));
  }

  descriptorSet(release: string): Uint8Array {
    return renderDescriptorSet(this.filesOf(release));
  }

  #place(release: string | undefined): number {
    return release === undefined ? this.releases.length : (this.#places.get(release) ?? this.releases.length);
  }
}

function firstOf<T extends Historic>(elements: readonly T[]): ReadonlyMap<string, T> {
  return new Map(elements.toReversed().map((element) => [element.name, element]));
}
