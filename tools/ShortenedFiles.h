// Two signals about files, each of which would look like a crash of ours. SIGBUS comes where somebody shortens a file that is
// mapped: the tools turn it into an error with the file's name. SIGXFSZ comes where a file would pass the limit of ulimit -f: the
// tools ignore it, so that the write fails and its error is printed.
#pragma once

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace hpc {

namespace detail {

/// The path of the file that is mapped at an address, by /proc/self/maps; "" where none is. Only calls that a signal
/// handler may make.
inline const char *mappedFileAt(uintptr_t address, char (&line)[4352]) {
  int maps = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  size_t filled = 0;
  for (char next; maps >= 0 && ::read(maps, &next, 1) == 1;) {
    if (next != '\n') {
      if (filled + 1 < sizeof(line))
        line[filled++] = next;
      continue;
    }
    line[filled] = 0; // begin-end flags offset device inode path
    filled = 0;
    char *rest = nullptr;
    uintptr_t begin = std::strtoull(line, &rest, 16), end = *rest == '-' ? std::strtoull(rest + 1, nullptr, 16) : 0;
    const char *path = std::strchr(line, '/');
    if (address < begin || address >= end)
      continue;
    ::close(maps);
    return path ? path : "";
  }
  if (maps >= 0)
    ::close(maps);
  return "";
}

inline const char *&toolName() {
  static const char *name = "";
  return name;
}

inline void onBusError(int signal, siginfo_t *info, void *) {
  static char line[4352];
  const char *path = info->si_code == BUS_ADRERR ? mappedFileAt(reinterpret_cast<uintptr_t>(info->si_addr), line) : "";
  if (!*path) { // something else: die of it
    ::signal(signal, SIG_DFL);
    return;
  }
  auto say = [](const char *text) { return ::write(STDERR_FILENO, text, std::strlen(text)); };
  for (const char *text : {toolName(), ": error[io]: '", path, "': was shortened while it was being read; run again when nobody writes to it\n"})
    if (say(text) < 0)
      break;
  ::_exit(1);
}

} // namespace detail

/// Call once, at the start of main, after other code has installed its handlers.
inline void reportShortenedFiles(const char *tool) {
  detail::toolName() = tool;
  struct sigaction action = {};
  action.sa_sigaction = detail::onBusError;
  action.sa_flags = SA_SIGINFO | SA_RESETHAND;
  ::sigaction(SIGBUS, &action, nullptr);
  ::signal(SIGXFSZ, SIG_IGN);
}

} // namespace hpc
