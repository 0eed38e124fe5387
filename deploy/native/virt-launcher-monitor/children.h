/* The launcher and everything else that the kernel makes a child of the monitor. */
#ifndef CHILDREN_H
#define CHILDREN_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct launcher {
  pid_t pid;
  bool has_ended;
  /* Its exit code; -1 when a signal ended it. */
  int exit_code;
};

/* Blocks the signals that the monitor waits for, and ignores a log reader that is gone. Returns the set of them. */
sigset_t take_signals(void);

/*
 * Starts the launcher with the monitor's arguments, without `--keep-after-failure`, and with CAP_NET_BIND_SERVICE as ambient
 * capability, so that the daemons that it starts have it too. Without the capability it starts all the same, with a
 * warning: most VMs need no DHCP server.
 *
 * Returns 0, or the errno of the exec.
 *
 * Source: KubeVirt v1.9.0 cmd/virt-launcher-monitor/virt-launcher-monitor.go
 */
int start_launcher(struct launcher *launcher, const char *path, char **argv);

/* FM-9.1: collects all children that have ended; several deaths may arrive as one signal. */
void reap_children(struct launcher *launcher);

/* Waits for a signal of the set, but no longer than `seconds`. Returns the signal, or 0 when none came. */
int wait_for_signal(const sigset_t *signals, int seconds);

#endif
