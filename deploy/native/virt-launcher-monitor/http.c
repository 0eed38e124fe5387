#include "http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_MS 2000
#define MAX_HEAD 8192

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits until the socket can do what `events` say. Returns 0 or an errno. */
static int wait_for(int fd, short events, int64_t limit_ms) {
  struct pollfd descriptor = {.fd = fd, .events = events};
  int64_t left_ms = limit_ms - now_ms();
  if (left_ms <= 0) return ETIMEDOUT;
  int count = poll(&descriptor, 1, (int)left_ms);
  if (count < 0) return errno;
  return count == 0 ? ETIMEDOUT : 0;
}

/* Connects; returns the socket, or the negative errno. */
static int connect_to(const struct sockaddr *address, socklen_t length, int64_t limit_ms) {
  int error = 0;
  socklen_t size = sizeof error;
  int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -errno;
  if (connect(fd, address, length) != 0) {
    error = errno;
    if (error == EINPROGRESS && (error = wait_for(fd, POLLOUT, limit_ms)) == 0) {
      getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    }
  }
  if (error == 0) return fd;
  close(fd);
  return -error;
}

/* localhost is both addresses; a server may listen on one of them. */
static int connect_to_localhost(int port, int64_t limit_ms) {
  struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port), .sin6_addr = in6addr_loopback};
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = connect_to((struct sockaddr *)&v4, sizeof v4, limit_ms);
  if (fd != -ECONNREFUSED) return fd;
  fd = connect_to((struct sockaddr *)&v6, sizeof v6, limit_ms);
  /* A pod without IPv6 only has the first answer. */
  return fd < 0 ? -ECONNREFUSED : fd;
}

static int send_all(int fd, const char *bytes, size_t length, int64_t limit_ms) {
  while (length > 0) {
    int error = wait_for(fd, POLLOUT, limit_ms);
    if (error != 0) return error;
    ssize_t count = send(fd, bytes, length, MSG_NOSIGNAL);
    if (count < 0) return errno;
    bytes += count;
    length -= (size_t)count;
  }
  return 0;
}

/* Reads until the empty line after the headers. */
static int receive_head(int fd, char *head, size_t size, int64_t limit_ms) {
  size_t length = 0;
  for (;;) {
    head[length] = '\0';
    if (strstr(head, "\r\n\r\n") != NULL) return 0;
    if (length == size - 1) return EMSGSIZE;
    int error = wait_for(fd, POLLIN, limit_ms);
    if (error != 0) return error;
    ssize_t count = recv(fd, head + length, size - 1 - length, 0);
    if (count < 0) return errno;
    if (count == 0) return EPROTO;
    length += (size_t)count;
  }
}

static bool is_server_envoy(const char *head) {
  for (const char *line = strstr(head, "\r\n"); line != NULL; line = strstr(line, "\r\n")) {
    line += 2;
    if (strncasecmp(line, "server:", 7) != 0) continue;
    const char *value = line + 7 + strspn(line + 7, " \t");
    size_t length = strcspn(value, "\r\n");
    while (length > 0 && (value[length - 1] == ' ' || value[length - 1] == '\t')) length--;
    return length == 5 && strncmp(value, "envoy", 5) == 0;
  }
  return false;
}

static struct http_answer exchange(int fd, const char *request, int64_t limit_ms) {
  char head[MAX_HEAD];
  struct http_answer answer = {0};
  answer.error = send_all(fd, request, strlen(request), limit_ms);
  if (answer.error == 0) answer.error = receive_head(fd, head, sizeof head, limit_ms);
  if (answer.error != 0) return answer;
  if (sscanf(head, "HTTP/1.%*c %3d", &answer.status) != 1) answer.error = EPROTO;
  answer.is_from_envoy = is_server_envoy(head);
  return answer;
}

struct http_answer http_ask(const char *method, const char *path, int port) {
  char request[512];
  int64_t limit_ms = now_ms() + LIMIT_MS;
  int fd = connect_to_localhost(port, limit_ms);
  if (fd < 0) return (struct http_answer){.error = -fd};
  snprintf(request, sizeof request,
           "%s %s HTTP/1.1\r\nHost: localhost:%d\r\nUser-Agent: virt-launcher-monitor\r\nContent-Length: 0\r\n"
           "Connection: close\r\n\r\n",
           method, path, port);
  struct http_answer answer = exchange(fd, request, limit_ms);
  close(fd);
  return answer;
}
