/** The parts of a Kubernetes object that a log line names. */
export interface LoggedObject {
  readonly kind?: string | undefined;
  readonly metadata?:
    | {
        readonly name?: string | undefined;
        readonly namespace?: string | undefined;
        readonly uid?: string | undefined;
      }
    | undefined;
}

/** Keys that KubeVirt adds to a line about an object. */
export interface ObjectFields {
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
}

/**
 * Log keys of an object, for `log.child(objectFields(vmi))`.
 *
 * `namespace` is left out when empty; `kind` and `uid` stay, even when empty, as in KubeVirt's lines.
 *
 * @source KubeVirt v1.9.0 staging client-go log package
 */
export function objectFields(object: LoggedObject): ObjectFields {
  const { name = '', namespace = '', uid = '' } = object.metadata ?? {};
  return { kind: object.kind ?? '', name, ...(namespace === '' ? {} : { namespace }), uid };
}
