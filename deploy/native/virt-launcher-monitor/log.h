/* Log lines in KubeVirt's form: one JSON object per line on standard error. */
#ifndef LOG_H
#define LOG_H

#include <stddef.h>

/* KubeVirt's verbosity; lines of log_verbose above it are left out. */
void log_set_verbosity(int verbosity);

/* `reason` is the text of an error, or NULL. */
__attribute__((format(printf, 5, 6))) void log_line(const char *level, const char *file, int line, const char *reason,
                                                    const char *format, ...);
__attribute__((format(printf, 4, 5))) void log_verbose_line(int verbosity, const char *file, int line,
                                                            const char *format, ...);

#define log_info(...) log_line("info", __FILE__, __LINE__, NULL, __VA_ARGS__)
#define log_warning(...) log_line("warning", __FILE__, __LINE__, NULL, __VA_ARGS__)
#define log_error(...) log_line("error", __FILE__, __LINE__, NULL, __VA_ARGS__)
#define log_error_reason(reason, ...) log_line("error", __FILE__, __LINE__, reason, __VA_ARGS__)
#define log_verbose(verbosity, ...) log_verbose_line(verbosity, __FILE__, __LINE__, __VA_ARGS__)

/* One line whose message comes in pieces, for messages of any length: begin, any number of pieces, end. */
void log_begin(void);
void log_piece(const char *bytes, size_t length);
void log_end(const char *file, int line);

#endif
