// What the node's files say instead of what the host's kernel says: uname(2).release and the wall clock.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

// The first line of a file, by system calls only: this runs inside clock_gettime.
static int first_line(const char *path, char *line, int size) {
  int fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  int n = syscall(SYS_read, fd, line, size - 1);
  syscall(SYS_close, fd);
  if (n < 0) return -1;
  line[n] = 0;
  line[strcspn(line, "\n")] = 0;
  return n;
}

int uname(struct utsname *u) {
  int r = syscall(SYS_uname, u);
  char release[65];
  if (!r && first_line("/etc/lab/kernel-release", release, sizeof release) > 0) {
    memset(u->release, 0, sizeof u->release);
    strncpy(u->release, release, sizeof u->release - 1);
  }
  return r;
}

// Seconds to add to the wall clock; read again once a second.
static long skew(void) {
  static long value, read_at = -1;
  struct timespec now;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC_COARSE, &now);
  if (now.tv_sec != read_at) {
    char text[32];
    value = first_line("/etc/lab/clock-skew-s", text, sizeof text) > 0 ? atol(text) : 0;
    read_at = now.tv_sec;
  }
  return value;
}

int clock_gettime(clockid_t clock, struct timespec *t) {
  int r = syscall(SYS_clock_gettime, clock, t);
  if (!r && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) t->tv_sec += skew();
  return r;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
  struct timespec s;
  int r = clock_gettime(CLOCK_REALTIME, &s);
  if (t) {
    t->tv_sec = s.tv_sec;
    t->tv_usec = s.tv_nsec / 1000;
  }
  return r;
}

time_t time(time_t *p) {
  struct timespec s;
  clock_gettime(CLOCK_REALTIME, &s);
  if (p) *p = s.tv_sec;
  return s.tv_sec;
}
