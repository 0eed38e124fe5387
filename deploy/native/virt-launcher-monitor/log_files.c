#include "log_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"

#define PASST_LOG "/var/run/kubevirt/passt.log"
#define QEMU_LOGS "/run/kubevirt-private/libvirt/qemu/log"
#define MAX_LINE_BYTES (512 * 1024)

/* Length of the line that is being written; 0 when none is open. */
static size_t line_length;

static void end_open_line(void) {
  if (line_length > 0) log_end(__FILE__, __LINE__);
  line_length = 0;
}

static void dump_bytes(const char *bytes, size_t length) {
  while (length > 0) {
    const char *newline = memchr(bytes, '\n', length);
    size_t part = newline == NULL ? length : (size_t)(newline - bytes);
    if (part > MAX_LINE_BYTES - line_length) part = MAX_LINE_BYTES - line_length;
    if (line_length == 0) log_begin();
    log_piece(bytes, part);
    line_length += part;
    if (newline == bytes + part) {
      part++;
      /* An empty line is a record too. */
      if (line_length == 0) log_end(__FILE__, __LINE__);
      end_open_line();
    } else if (line_length == MAX_LINE_BYTES) end_open_line();
    bytes += part;
    length -= part;
  }
}

/* As long as the file is now: whoever still writes to it must not keep the pod. */
static void dump_open_file(int fd, const char *path) {
  char bytes[4096];
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return;
  log_info("dump log file: %s", path);
  for (off_t left = info.st_size; left > 0;) {
    size_t wanted = left < (off_t)sizeof bytes ? (size_t)left : sizeof bytes;
    ssize_t count = read(fd, bytes, wanted);
    if (count <= 0) break;
    dump_bytes(bytes, (size_t)count);
    left -= count;
  }
  end_open_line();
}

static void dump_file(const char *path) {
  /* Not blocking, in case that it is a pipe. */
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd >= 0) {
    dump_open_file(fd, path);
    close(fd);
  } else if (errno != ENOENT) log_error_reason(strerror(errno), "failed to open log file: %s", path);
}

static int is_no_dot(const struct dirent *entry) {
  return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static void dump_directory(const char *directory) {
  char path[512];
  struct dirent **entries;
  int count = scandir(directory, &entries, is_no_dot, alphasort);
  if (count < 0) {
    log_error_reason(strerror(errno), "failed to read log directory: %s", directory);
    return;
  }
  for (int i = 0; i < count; i++) {
    snprintf(path, sizeof path, "%s/%s", directory, entries[i]->d_name);
    dump_file(path);
    free(entries[i]);
  }
  free(entries);
}

void dump_log_files(void) {
  dump_file(PASST_LOG);
  dump_directory(QEMU_LOGS);
}
