#include "qemu.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "log.h"

#define PATIENCE_SECONDS 10
/* More than the arguments of a QEMU with hundreds of devices. */
#define MAX_COMMAND_LINE (256 * 1024)
/* Deeper than any chain of processes in a pod. */
#define MAX_ANCESTORS 64

static ssize_t read_proc(pid_t pid, const char *name, char *bytes, size_t size) {
  char path[64];
  size_t length = 0;
  snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  while (length < size) {
    ssize_t count = read(fd, bytes + length, size - length);
    if (count <= 0) break;
    length += (size_t)count;
  }
  close(fd);
  return (ssize_t)length;
}

static pid_t parent_of(pid_t pid) {
  char stat[512];
  int parent;
  ssize_t length = read_proc(pid, "stat", stat, sizeof stat - 1);
  if (length <= 0) return 0;
  stat[length] = '\0';
  /* The name in parentheses may contain anything, parentheses too. */
  const char *after_name = strrchr(stat, ')');
  return after_name != NULL && sscanf(after_name, ") %*c %d", &parent) == 1 ? parent : 0;
}

/* What is not below the monitor is no part of this VM: a person who looks around in the pod, or another VM. */
static bool is_descendant(pid_t pid) {
  pid_t monitor = getpid();
  for (int i = 0; i < MAX_ANCESTORS && pid > 0; i++) {
    pid = parent_of(pid);
    if (pid == monitor) return true;
  }
  return false;
}

/* True for a process with the text in its command line. One that has ended has no command line any more. */
static bool has_command(pid_t pid, const char *text) {
  static char line[MAX_COMMAND_LINE];
  ssize_t length = read_proc(pid, "cmdline", line, sizeof line);
  return length > 0 && memmem(line, (size_t)length, text, strlen(text)) != NULL;
}

/* Sends a signal (0: none) to each process of this VM with the text in its command line. Returns how many there are. */
static int signal_commands(const char *text, int signal_number) {
  DIR *proc = opendir("/proc");
  int found = 0;
  if (proc == NULL) return 0;
  for (struct dirent *entry; (entry = readdir(proc)) != NULL;) {
    if (!isdigit((unsigned char)entry->d_name[0])) continue;
    pid_t pid = (pid_t)atoi(entry->d_name);
    if (!has_command(pid, text) || !is_descendant(pid)) continue;
    found++;
    if (signal_number != 0) kill(pid, signal_number);
  }
  closedir(proc);
  return found;
}

static bool is_over(const struct timespec *limit) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec > limit->tv_sec || (now.tv_sec == limit->tv_sec && now.tv_nsec >= limit->tv_nsec);
}

/* Looks at once, then at each death of a child and every second. */
static bool wait_until_gone(const char *text, struct launcher *launcher) {
  struct timespec limit;
  sigset_t deaths;
  sigemptyset(&deaths);
  sigaddset(&deaths, SIGCHLD);
  clock_gettime(CLOCK_MONOTONIC, &limit);
  limit.tv_sec += PATIENCE_SECONDS;
  while (signal_commands(text, 0) > 0) {
    if (is_over(&limit)) return false;
    wait_for_signal(&deaths, 1);
    reap_children(launcher);
  }
  return true;
}

bool end_qemu(struct launcher *launcher) {
  static const char *const names[] = {"qemu-system", "qemu-kvm"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (signal_commands(names[i], 0) == 0) continue;
    log_info("Killing QEMU gracefully.");
    signal_commands(names[i], SIGTERM);
    if (wait_until_gone(names[i], launcher)) return true;
    log_warning("QEMU did not end within %d s, killing it", PATIENCE_SECONDS);
    signal_commands(names[i], SIGKILL);
    return false;
  }
  return true;
}
