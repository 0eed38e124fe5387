#include "children.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "log.h"

static sigset_t inherited_mask;

sigset_t take_signals(void) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGQUIT);
  sigaddset(&signals, SIGCHLD);
  /* Blocked signals reach even process 1, for which the kernel drops all that have no handler. */
  sigprocmask(SIG_BLOCK, &signals, &inherited_mask);
  signal(SIGPIPE, SIG_IGN);
  /* Elsewhere than as process 1, a QEMU whose libvirt is gone would become a child of someone else. */
  if (getpid() != 1) prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  return signals;
}

/* An ambient capability survives the exec of a program without file capabilities; it must be inheritable before. */
static int raise_ambient(unsigned capability) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
  if (syscall(SYS_capget, &header, data) != 0) return errno;
  data[CAP_TO_INDEX(capability)].inheritable |= CAP_TO_MASK(capability);
  if (syscall(SYS_capset, &header, data) != 0) return errno;
  return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0) == 0 ? 0 : errno;
}

_Noreturn static void become_launcher(const char *path, char **arguments, int report) {
  signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_SETMASK, &inherited_mask, NULL);
  execv(path, arguments);
  int error = errno;
  ssize_t written = write(report, &error, sizeof error);
  _exit(written == sizeof error ? 127 : 126);
}

/* The arguments for the launcher; argv ends with NULL. */
static char **launcher_arguments(const char *path, char **argv) {
  size_t count = 0;
  while (argv[count] != NULL) count++;
  char **arguments = calloc(count + 2, sizeof *arguments);
  if (arguments == NULL) return NULL;
  size_t kept = 0;
  arguments[kept++] = (char *)path;
  for (size_t i = 1; i < count; i++) {
    if (strcmp(argv[i], "--keep-after-failure") != 0) arguments[kept++] = argv[i];
  }
  return arguments;
}

int start_launcher(struct launcher *launcher, const char *path, char **argv) {
  int report[2];
  int error = raise_ambient(CAP_NET_BIND_SERVICE);
  if (error != 0) {
    log_line("warning", __FILE__, __LINE__, strerror(error),
             "CAP_NET_BIND_SERVICE cannot be handed to virt-launcher: its DHCP servers will not work");
  }
  char **arguments = launcher_arguments(path, argv);
  if (arguments == NULL) return ENOMEM;
  if (pipe2(report, O_CLOEXEC) != 0) return errno;
  launcher->pid = fork();
  if (launcher->pid == 0) become_launcher(path, arguments, report[1]);
  error = launcher->pid < 0 ? errno : 0;
  close(report[1]);
  free(arguments);
  /* The pipe closes by itself when the exec succeeds. */
  if (launcher->pid > 0 && read(report[0], &error, sizeof error) != sizeof error) error = 0;
  close(report[0]);
  return error;
}

void reap_children(struct launcher *launcher) {
  for (;;) {
    int status;
    pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid == 0) {
      log_verbose(4, "No more processes to be reaped");
      return;
    }
    if (pid < 0) {
      log_error_reason(strerror(errno), "Break reap loop");
      return;
    }
    log_verbose(4, "Reaped pid %d with status %d", (int)pid, status);
    if (pid != launcher->pid || launcher->has_ended) continue;
    log_info("Reaped Launcher main pid");
    launcher->has_ended = true;
    launcher->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
}

int wait_for_signal(const sigset_t *signals, int seconds) {
  struct timespec limit = {.tv_sec = seconds};
  int signal_number = sigtimedwait(signals, NULL, &limit);
  return signal_number < 0 ? 0 : signal_number;
}
