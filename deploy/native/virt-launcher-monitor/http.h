/* One HTTP request to this pod. */
#ifndef HTTP_H
#define HTTP_H

#include <stdbool.h>

struct http_answer {
  /* errno of what went wrong, or 0. */
  int error;
  int status;
  /* The header `server` says `envoy`. */
  bool is_from_envoy;
};

/* Asks localhost and reads the head of the answer; everything within 2 s. */
struct http_answer http_ask(const char *method, const char *path, int port);

#endif
