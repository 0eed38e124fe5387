/* A QEMU that outlives the launcher. */
#ifndef QEMU_H
#define QEMU_H

#include <stdbool.h>

#include "children.h"

/*
 * FM-9.3: looks for a QEMU below the monitor, asks it to end, and ends it by force after 10 s.
 *
 * Returns false when it had to be forced.
 *
 * Source: KubeVirt v1.9.0 cmd/virt-launcher-monitor/virt-launcher-monitor.go (which leaves it running)
 */
bool end_qemu(struct launcher *launcher);

#endif
