#include "flags.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

#define VERBOSITY_VARIABLE "VIRT_LAUNCHER_LOG_VERBOSITY"

static bool parse_int(const char *text, int *value) {
  char *end;
  errno = 0;
  long number = strtol(text, &end, 10);
  if (*text == '\0' || *text == ' ' || *end != '\0' || errno != 0 || number < INT_MIN || number > INT_MAX) return false;
  *value = (int)number;
  return true;
}

static bool parse_bool(const char *text, bool *value) {
  static const char *const yes[] = {"1", "t", "T", "true", "TRUE", "True"};
  static const char *const no[] = {"0", "f", "F", "false", "FALSE", "False"};
  for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
    if (strcmp(text, yes[i]) == 0 || strcmp(text, no[i]) == 0) {
      *value = strcmp(text, yes[i]) == 0;
      return true;
    }
  }
  return false;
}

/* The value of a flag given as `--name=value` or `--name value`; NULL when the argument is another flag or has no value. */
static const char *value_of(const char *name, int argc, char **argv, int *i) {
  const char *argument = argv[*i];
  size_t length = strlen(name);
  if (strncmp(argument, name, length) != 0) return NULL;
  if (argument[length] == '=') return argument + length + 1;
  if (argument[length] != '\0' || *i + 1 >= argc) return NULL;
  return argv[++*i];
}

static void set_verbosity(const char *text) {
  int verbosity;
  if (parse_int(text, &verbosity)) log_set_verbosity(verbosity);
  else log_warning("failed to set log verbosity. It should be an integer, got %s instead.", text);
}

struct flags parse_flags(int argc, char **argv) {
  struct flags flags = {.container_disk_dir = "/var/run/kubevirt/container-disks", .keep_after_failure = false};
  static const char keep[] = "--keep-after-failure";
  const char *value;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], keep) == 0) flags.keep_after_failure = true;
    else if (strncmp(argv[i], keep, sizeof keep - 1) == 0 && argv[i][sizeof keep - 1] == '=') {
      if (!parse_bool(argv[i] + sizeof keep, &flags.keep_after_failure)) log_warning("%s is not a boolean", argv[i]);
    } else if ((value = value_of("--container-disk-dir", argc, argv, &i)) != NULL) flags.container_disk_dir = value;
    else if ((value = value_of("-v", argc, argv, &i)) != NULL) set_verbosity(value);
    else if ((value = value_of("--v", argc, argv, &i)) != NULL) set_verbosity(value);
    else if (strncmp(argv[i], "-v", 2) == 0 && isdigit((unsigned char)argv[i][2])) set_verbosity(argv[i] + 2);
  }
  if ((value = getenv(VERBOSITY_VARIABLE)) != NULL) set_verbosity(value);
  return flags;
}
