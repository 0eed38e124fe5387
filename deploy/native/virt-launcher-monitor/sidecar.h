/* What keeps the pod alive beside the launcher, and is told that it can end. */
#ifndef SIDECAR_H
#define SIDECAR_H

/*
 * Ends the Istio proxy of the pod, if there is one: a pod whose other containers have ended stays as long as it runs.
 * Without one this takes nearly 8 s, since it may just be starting.
 *
 * Source: KubeVirt v1.9.0 cmd/virt-launcher-monitor/virt-launcher-monitor.go
 */
void end_istio_proxy(void);

/* Removes the sockets of the container disks, on which their containers end. */
void remove_container_disk_sockets(const char *directory);

#endif
