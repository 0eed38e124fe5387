import { LibvirtCallError } from '../domain/libvirt-port.ts';
import { LauncherError, textOf } from '../errors.ts';

/**
 * An error as handlers expect to read it: libvirt's own come as `LibvirtError(Code=..., Domain=..., Message='...')`,
 * those wrapped in another keep the text of the wrapper.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/cmd-server/server.go getErrorMessage
 */
export function wireError(caught: unknown): LauncherError {
  if (caught instanceof LauncherError) return caught;
  const text =
    caught instanceof LibvirtCallError
      ? `LibvirtError(Code=${caught.code}, Domain=${caught.domain}, Message='${caught.text}')`
      : textOf(caught);
  return new LauncherError('BadRequest', text, { cause: caught });
}
