/* What the kernel knows of a process: time on a core and resident memory (Linux, /proc). */
#ifndef BENCH_PROCESS_H
#define BENCH_PROCESS_H

#include <ctype.h>
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Nanoseconds that all threads of `pid` have run. schedstat counts nanoseconds where stat counts
 * ticks of 10 ms. Zero where the kernel does not say. */
static inline int64_t process_cpu_ns(int pid)
{
    char path[300];
    int64_t total = 0;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *tasks = opendir(path);
    if (tasks == NULL)
        return 0;
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        if (!isdigit((unsigned char)task->d_name[0]))
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%s/schedstat", pid, task->d_name);
        FILE *file = fopen(path, "r");
        if (file == NULL)
            continue;
        long long ran;
        if (fscanf(file, "%lld", &ran) == 1)
            total += ran;
        fclose(file);
    }
    closedir(tasks);
    return total;
}

/* A field of /proc/PID/status in bytes: "VmRSS:" (resident now) or "VmHWM:" (its peak). */
static inline int64_t process_memory_bytes(int pid, const char *field)
{
    char path[64], line[256];
    long long kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, field, strlen(field)) == 0)
            sscanf(line + strlen(field), "%lld", &kib);
    fclose(file);
    return kib * 1024;
}

#endif
