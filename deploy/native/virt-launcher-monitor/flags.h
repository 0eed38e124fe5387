/* The part of the launcher's command line that the monitor reads. */
#ifndef FLAGS_H
#define FLAGS_H

#include <stdbool.h>

struct flags {
  /* Directory whose sockets are removed at the end. */
  const char *container_disk_dir;
  /* Block instead of ending when the result is not clean. */
  bool keep_after_failure;
};

/*
 * Reads the flags and sets the verbosity of the log, for which VIRT_LAUNCHER_LOG_VERBOSITY goes before `-v`. Unknown flags
 * are the launcher's; a value that cannot be read is told and left out.
 *
 * Source: KubeVirt v1.9.0 cmd/virt-launcher-monitor/virt-launcher-monitor.go
 */
struct flags parse_flags(int argc, char **argv);

#endif
