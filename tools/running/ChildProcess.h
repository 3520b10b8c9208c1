// A copy of this program with other variables of the environment, its output in pipes. It ends when this process ends, however that ends.
#pragma once

#include "runtime/base/Status.h"

#include <string>
#include <utility>
#include <vector>

namespace hpc {

struct ChildOptions {
  std::vector<std::string> arguments; ///< the program's name first
  std::vector<std::pair<std::string, std::string>> variables; ///< in place of those of this process with the same names
  bool sharesOutput = false; ///< standard output is this process's; else a pipe
};

/// Descriptors do not block when they are read; -1: none.
struct ChildProcess {
  int pid = -1;
  int output = -1, errors = -1; ///< its standard output and standard error
  int steps = -1;               ///< what ParentProcess.h sends
};

/// Starts the program that this process runs. The child has a process group of its own, so the terminal sends it no signals, no input, and
/// ignores SIGUSR1 until it asks for it. To be called before this process has threads.
Expected<ChildProcess> startChild(const ChildOptions &options);

} // namespace hpc
