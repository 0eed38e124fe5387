#include "log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define COMPONENT "virt-launcher-monitor"
#define DEFAULT_VERBOSITY 2
/* How long a reader may keep the monitor from writing before the rest of the line is given up. */
#define STUCK_READER_MS 2000

static int max_verbosity = DEFAULT_VERBOSITY;

static struct {
  char bytes[4096];
  size_t length;
} out;

/* What is left of a UTF-8 sequence that the last piece of a message began. */
static struct {
  unsigned char bytes[4];
  size_t have;
  size_t want;
} character;

void log_set_verbosity(int verbosity) { max_verbosity = verbosity; }

/* Standard error is shared with the launcher, which may have made it non-blocking. */
static bool wait_until_writable(void) {
  struct pollfd descriptor = {.fd = STDERR_FILENO, .events = POLLOUT};
  return poll(&descriptor, 1, STUCK_READER_MS) == 1 && (descriptor.revents & POLLOUT) != 0;
}

static void flush(void) {
  size_t written = 0;
  while (written < out.length) {
    ssize_t count = write(STDERR_FILENO, out.bytes + written, out.length - written);
    if (count > 0) written += (size_t)count;
    else if (errno == EAGAIN && !wait_until_writable()) break;
    else if (errno != EAGAIN && errno != EINTR) break;
  }
  out.length = 0;
}

static void put(const char *bytes, size_t length) {
  while (length > 0) {
    if (out.length == sizeof out.bytes) flush();
    size_t room = sizeof out.bytes - out.length;
    size_t part = length < room ? length : room;
    memcpy(out.bytes + out.length, bytes, part);
    out.length += part;
    bytes += part;
    length -= part;
  }
}

static void put_text(const char *text) { put(text, strlen(text)); }

static void put_replacement(void) { put_text("\\ufffd"); }

/* Length of the sequence that a byte begins; 0 for a byte that begins none. */
static size_t sequence_length(unsigned char byte) {
  if (byte < 0x80) return 1;
  if (byte >= 0xc2 && byte <= 0xdf) return 2;
  if (byte >= 0xe0 && byte <= 0xef) return 3;
  return byte >= 0xf0 && byte <= 0xf4 ? 4 : 0;
}

/* Overlong forms, surrogates, and what is beyond Unicode: told by the second byte. */
static bool is_continuation(unsigned char byte) {
  unsigned char low = 0x80, high = 0xbf;
  if (character.have == 1) {
    if (character.bytes[0] == 0xe0) low = 0xa0;
    if (character.bytes[0] == 0xed) high = 0x9f;
    if (character.bytes[0] == 0xf0) low = 0x90;
    if (character.bytes[0] == 0xf4) high = 0x8f;
  }
  return byte >= low && byte <= high;
}

static void put_ascii(unsigned char byte) {
  char escaped[8];
  if (byte == '"' || byte == '\\') snprintf(escaped, sizeof escaped, "\\%c", byte);
  else if (byte == '\n') strcpy(escaped, "\\n");
  else if (byte == '\r') strcpy(escaped, "\\r");
  else if (byte == '\t') strcpy(escaped, "\\t");
  else if (byte < 0x20) snprintf(escaped, sizeof escaped, "\\u%04x", byte);
  else snprintf(escaped, sizeof escaped, "%c", byte);
  put_text(escaped);
}

static void end_characters(void) {
  for (; character.have > 0; character.have--) put_replacement();
}

static void put_byte(unsigned char byte) {
  if (character.have > 0 && is_continuation(byte)) {
    character.bytes[character.have++] = byte;
    if (character.have < character.want) return;
    put((const char *)character.bytes, character.have);
    character.have = 0;
    return;
  }
  end_characters();
  character.want = sequence_length(byte);
  if (character.want == 0) put_replacement();
  else if (character.want == 1) put_ascii(byte);
  else character.bytes[character.have++] = byte;
}

/* Text inside a JSON string; a byte that is no UTF-8 becomes U+FFFD, as in Go. */
static void put_escaped(const char *bytes, size_t length) {
  for (size_t i = 0; i < length; i++) put_byte((unsigned char)bytes[i]);
}

static void put_string(const char *key, const char *value) {
  put_text(",\"");
  put_text(key);
  put_text("\":\"");
  put_escaped(value, strlen(value));
  end_characters();
  put_text("\"");
}

static void begin_line(const char *level) {
  put_text("{\"component\":\"" COMPONENT "\",\"level\":\"");
  put_text(level);
  put_text("\",\"msg\":\"");
}

static void end_line(const char *file, int line, const char *reason) {
  char text[64];
  struct timespec now;
  struct tm utc;
  end_characters();
  put_text("\"");
  snprintf(text, sizeof text, "%s:%d", file, line);
  put_string("pos", text);
  if (reason != NULL) put_string("reason", reason);
  clock_gettime(CLOCK_REALTIME, &now);
  gmtime_r(&now.tv_sec, &utc);
  size_t length = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  snprintf(text + length, sizeof text - length, ".%06ldZ", now.tv_nsec / 1000);
  put_string("timestamp", text);
  put_text("}\n");
  flush();
}

static void put_message(const char *format, va_list arguments) {
  char message[1024];
  vsnprintf(message, sizeof message, format, arguments);
  put_escaped(message, strlen(message));
}

void log_line(const char *level, const char *file, int line, const char *reason, const char *format, ...) {
  va_list arguments;
  begin_line(level);
  va_start(arguments, format);
  put_message(format, arguments);
  va_end(arguments);
  end_line(file, line, reason);
}

void log_verbose_line(int verbosity, const char *file, int line, const char *format, ...) {
  va_list arguments;
  if (verbosity > max_verbosity) return;
  begin_line("info");
  va_start(arguments, format);
  put_message(format, arguments);
  va_end(arguments);
  end_line(file, line, NULL);
}

void log_begin(void) { begin_line("info"); }

void log_piece(const char *bytes, size_t length) { put_escaped(bytes, length); }

void log_end(const char *file, int line) { end_line(file, line, NULL); }
