/**
 * The libvirt name of a VMI's domain.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/api/defaults.go, VMINamespaceKeyFunc
 */
export function domainName(namespace: string, name: string): string {
  return `${namespace}_${name}`;
}

/**
 * Splits a libvirt domain name at its first underscore; namespaces have none.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/util/libvirt_helper.go, SplitVMINamespaceKey
 */
export function splitDomainName(libvirtName: string): { readonly namespace: string; readonly name: string } {
  const at = libvirtName.indexOf('_');
  return at < 0
    ? { namespace: 'default', name: libvirtName }
    : { namespace: libvirtName.slice(0, at), name: libvirtName.slice(at + 1) };
}
