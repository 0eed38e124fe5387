#include "sidecar.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "http.h"
#include "log.h"

#define READY_PORT 15021
#define QUIT_PORT 15020
#define ATTEMPTS 4
#define FIRST_PAUSE_MS 50
#define PAUSE_FACTOR 5

static void sleep_ms(long ms) {
  struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
  while (nanosleep(&pause, &pause) != 0 && errno == EINTR) {
  }
}

/* Asks until there is an answer, four times at most. A proxy that is just starting refuses. */
static struct http_answer ask(const char *method, const char *path, int port, bool retry_unavailable) {
  struct http_answer answer = {0};
  long pause_ms = FIRST_PAUSE_MS;
  for (int i = 0; i < ATTEMPTS; i++, pause_ms *= PAUSE_FACTOR) {
    answer = http_ask(method, path, port);
    bool is_refused = answer.error == ECONNREFUSED || answer.error == ECONNRESET;
    if (!is_refused && !(retry_unavailable && answer.status == 503)) break;
    sleep_ms(pause_ms);
  }
  return answer;
}

void end_istio_proxy(void) {
  struct http_answer ready = ask("GET", "/healthz/ready", READY_PORT, false);
  if (ready.error != 0 || !ready.is_from_envoy) return;
  struct http_answer quit = ask("POST", "/quitquitquit", QUIT_PORT, true);
  if (quit.error != 0) log_error_reason(strerror(quit.error), "failed to end the istio proxy");
  else if (quit.status != 200) log_error("failed to end the istio proxy: it answered with status %d", quit.status);
}

static bool is_socket_name(const char *name) {
  static const char ending[] = ".sock";
  size_t length = strlen(name);
  return length >= sizeof ending - 1 && strcmp(name + length - (sizeof ending - 1), ending) == 0;
}

void remove_container_disk_sockets(const char *directory) {
  DIR *entries = opendir(directory);
  if (entries == NULL) {
    if (errno != ENOENT) log_error_reason(strerror(errno), "failed to read %s", directory);
    return;
  }
  for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
    if (!is_socket_name(entry->d_name) || unlinkat(dirfd(entries), entry->d_name, 0) == 0 || errno == ENOENT) continue;
    log_error_reason(strerror(errno), "failed to remove %s/%s", directory, entry->d_name);
  }
  closedir(entries);
}
