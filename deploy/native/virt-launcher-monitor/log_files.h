/* Log files that nobody can read any more once the pod is gone. */
#ifndef LOG_FILES_H
#define LOG_FILES_H

/*
 * Writes passt's log and QEMU's logs to the monitor's log, one record per line. A line is cut at 512 KiB.
 *
 * Source: KubeVirt v1.9.0 cmd/virt-launcher-monitor/virt-launcher-monitor.go
 */
void dump_log_files(void);

#endif
