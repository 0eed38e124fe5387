/*
 * virt-launcher-monitor: process 1 of a launcher pod's compute container. It starts virt-launcher, collects what ends in
 * the pod, and cleans up behind the launcher. Its exit code is the launcher's.
 *
 * Source: KubeVirt v1.9.0 cmd/virt-launcher-monitor/virt-launcher-monitor.go
 */
#include <stdlib.h>
#include <string.h>

#include "children.h"
#include "flags.h"
#include "log.h"
#include "log_files.h"
#include "qemu.h"
#include "sidecar.h"

#define LAUNCHER "/usr/bin/virt-launcher"
/* Set, to anything, where there are no pods and so no sidecars to tell. */
#define NO_SIDECARS_VARIABLE "VIRT_LAUNCHER_NO_SIDECARS"
/* A lost SIGCHLD is made up for this often. */
#define SWEEP_SECONDS 10

static void wait_for_launcher(struct launcher *launcher, const sigset_t *signals) {
  while (!launcher->has_ended) {
    int signal_number = wait_for_signal(signals, SWEEP_SECONDS);
    if (signal_number == 0 || signal_number == SIGCHLD) reap_children(launcher);
    else {
      log_info("signalling virt-launcher to shut down");
      kill(launcher->pid, SIGTERM);
    }
  }
}

/* Runs the launcher from its start to its end. Returns the exit code that is to be the pod's. */
static int run_launcher(char **argv, const sigset_t *signals) {
  struct launcher launcher = {0};
  int error = start_launcher(&launcher, LAUNCHER, argv);
  if (error != 0) {
    log_error_reason(strerror(error), "failed to run virt-launcher");
    return 1;
  }
  wait_for_launcher(&launcher, signals);
  if (launcher.exit_code != 0) log_error("dirty virt-launcher shutdown: exit-code %d", launcher.exit_code);
  dump_log_files();
  if (end_qemu(&launcher)) return launcher.exit_code;
  log_error_reason("QEMU did not end when it was asked to", "monitoring virt-launcher failed");
  return 1;
}

/* For people who want to look into the pod of a failed VM. Children are still collected. */
_Noreturn static void stay(const sigset_t *signals) {
  struct launcher none = {.has_ended = true};
  log_info("keeping virt-launcher container alive since --keep-after-failure is set to true");
  for (;;) {
    if (wait_for_signal(signals, SWEEP_SECONDS) == SIGCHLD) reap_children(&none);
  }
}

int main(int argc, char **argv) {
  sigset_t signals = take_signals();
  struct flags flags = parse_flags(argc, argv);
  int code = run_launcher(argv, &signals);
  if (getenv(NO_SIDECARS_VARIABLE) == NULL) end_istio_proxy();
  remove_container_disk_sockets(flags.container_disk_dir);
  if (flags.keep_after_failure && code != 0) stay(&signals);
  log_info("virt-launcher-monitor: Exiting...");
  return code;
}
