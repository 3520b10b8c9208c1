// The end of a tool without LLVM: its error, or the check that its output was written.
#pragma once

#include "runtime/base/Status.h"

#include <cstdio>
#include <iostream>

namespace hpc {

/// The name of the running tool, before its messages; main sets it where code of several tools prints.
inline std::string &toolName() {
  static std::string name = "hpc-run";
  return name;
}

/// "hpc-run: note: ..." on standard error.
inline void printNote(const std::string &text) { std::fprintf(stderr, "%s: note: %s\n", toolName().c_str(), text.c_str()); }

/// "hpc-run: error[usage]: ..." on standard error; the exit code of the error.
inline int reportError(const std::string &tool, const Status &status) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", tool.c_str(), status.text().c_str());
  return status.exitCode();
}

/// The exit code of a tool that has done its work: an error if its output could not be written.
inline int finish(const std::string &tool) {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && !std::ferror(stdout) && std::cout.good())
    return 0;
  return reportError(
      tool, Status::error(ErrorKind::Io,
                          "standard output cannot be written, so its text is incomplete; look for a full disk"));
}

} // namespace hpc
