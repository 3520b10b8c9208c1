// A library for LD_PRELOAD that counts the calls by which a program changes a folder, and lets the one of number FAULT_AT fail: with FAULT_KIND=kill the process dies by
// SIGKILL, in a write after half of it, else before the call; with FAULT_KIND=nospace the call and all later ones that need room return ENOSPC. FAULT_FOLDER is the folder's
// absolute path, FAULT_COUNT a file that receives the name of each call.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_long calls;

static int isInside(const char *path) {
  const char *folder = getenv("FAULT_FOLDER");
  char whole[8192];
  if (!folder || !path)
    return 0;
  if (path[0] != '/') {
    if (!getcwd(whole, 4096))
      return 0;
    strncat(strcat(whole, "/"), path, 4000);
    path = whole;
  }
  return strncmp(path, folder, strlen(folder)) == 0;
}

static int isFileInside(int file) {
  char link[64], path[4096];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof(path) - 1);
  if (length <= 0)
    return 0;
  path[length] = 0;
  return isInside(path);
}

static void note(const char *name) {
  const char *path = getenv("FAULT_COUNT");
  static ssize_t (*realWrite)(int, const void *, size_t);
  static int (*realOpen)(const char *, int, ...);
  if (!path)
    return;
  if (!realWrite) {
    realOpen = dlsym(RTLD_NEXT, "open");
    realWrite = dlsym(RTLD_NEXT, "write");
  }
  int file = realOpen(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
  char line[64];
  ssize_t done = realWrite(file, line, snprintf(line, sizeof(line), "%s\n", name));
  (void)done;
  close(file);
}

static int isKill(void) { return strcmp(getenv("FAULT_KIND") ? getenv("FAULT_KIND") : "", "kill") == 0; }

/// 0: the call is done; 1: it fails.
static int fails(const char *name, int needsRoom) {
  const long at = getenv("FAULT_AT") ? atol(getenv("FAULT_AT")) : -1, number = atomic_fetch_add(&calls, 1);
  note(name);
  if (at < 0 || number < at)
    return 0;
  if (isKill()) {
    kill(getpid(), SIGKILL);
    for (;;)
      pause();
  }
  if (!needsRoom)
    return 0;
  errno = ENOSPC;
  return 1;
}

ssize_t write(int file, const void *data, size_t bytes) {
  ssize_t (*real)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
  if (!isFileInside(file))
    return real(file, data, bytes);
  if (isKill() && getenv("FAULT_AT") && atomic_load(&calls) == atol(getenv("FAULT_AT")))
    real(file, data, bytes / 2);
  return fails("write", 1) ? -1 : real(file, data, bytes);
}

int fsync(int file) {
  int (*real)(int) = dlsym(RTLD_NEXT, "fsync");
  return isFileInside(file) && fails("fsync", 1) ? -1 : real(file);
}

#define OPEN(NAME)                                                                                                     \
  int NAME(const char *path, int flags, ...) {                                                                         \
    int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, #NAME);                                                     \
    mode_t mode = 0;                                                                                                   \
    if (flags & (O_CREAT | __O_TMPFILE)) {                                                                             \
      va_list list;                                                                                                    \
      va_start(list, flags);                                                                                           \
      mode = va_arg(list, mode_t);                                                                                     \
      va_end(list);                                                                                                    \
      if (isInside(path) && fails("open", 1))                                                                          \
        return -1;                                                                                                     \
    }                                                                                                                  \
    return real(path, flags, mode);                                                                                    \
  }
OPEN(open)
OPEN(open64)

#define PATH(NAME, ROOM, PARAMETERS, ARGUMENTS, INSIDE)                                                                \
  int NAME PARAMETERS {                                                                                                \
    int (*real) PARAMETERS = dlsym(RTLD_NEXT, #NAME);                                                                  \
    return isInside(INSIDE) && fails(#NAME, ROOM) ? -1 : real ARGUMENTS;                                               \
  }
PATH(mkdir, 1, (const char *path, mode_t mode), (path, mode), path)
PATH(rename, 1, (const char *from, const char *to), (from, to), to)
PATH(renameat2, 1, (int a, const char *from, int b, const char *to, unsigned flags), (a, from, b, to, flags), to)
PATH(symlink, 1, (const char *target, const char *path), (target, path), path)
PATH(linkat, 1, (int a, const char *from, int b, const char *to, int flags), (a, from, b, to, flags), to)
PATH(unlink, 0, (const char *path), (path), path)
PATH(rmdir, 0, (const char *path), (path), path)
PATH(remove, 0, (const char *path), (path), path)

int unlinkat(int folder, const char *path, int flags) {
  int (*real)(int, const char *, int) = dlsym(RTLD_NEXT, "unlinkat");
  const int inside = folder == AT_FDCWD ? isInside(path) : isFileInside(folder);
  return inside && fails("unlinkat", 0) ? -1 : real(folder, path, flags);
}
