// The output of a process that this one has started: into its log, that of the first process also to the terminal. Its error is kept back,
// since a failure of one is an error in all, and is printed once.
#pragma once

#include "runtime/base/Status.h"

#include <string>
#include <string_view>

namespace hpc {

class ChildOutput {
public:
  /// `log`: a file, to which is added; "": none. `isFirst`: of the processes on this machine. Lines on standard error of others without a
  /// log go to this process's, with `number` before them.
  static Expected<ChildOutput> open(const std::string &log, int64_t number, bool isFirst);
  ChildOutput(ChildOutput &&other) noexcept;
  ChildOutput &operator=(ChildOutput &&) = delete;
  ~ChildOutput();

  void addOutput(std::string_view text);
  void addErrors(std::string_view text);
  /// The beginning of a line whose end has not come.
  void end();

  /// "hpc-run: error[io]: ...", all of its lines; "" where none was printed.
  const std::string &error() const { return kept; }

private:
  ChildOutput(std::string prefix, bool isFirst, int log) : prefix(std::move(prefix)), isFirst(isFirst), log(log) {}
  void addLine(std::string_view line);

  const std::string prefix;
  const bool isFirst;
  int log;
  std::string line, kept; ///< the line that has no end yet; the error
  bool isRepeated = false; ///< the error, by a second one
};

} // namespace hpc
