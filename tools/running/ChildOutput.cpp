// An error is the last that a tool prints, so all lines from it on are the error's, up to one that repeats it for the other processes.
#include "tools/running/ChildOutput.h"

#include "tools/ExitCode.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace hpc {

/// The run goes on where a text cannot be written.
static void writeAll(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t bytes = ::write(descriptor, text.data(), text.size());
    if (bytes < 0 && errno == EINTR)
      continue;
    if (bytes <= 0)
      return;
    text.remove_prefix(size_t(bytes));
  }
}

Expected<ChildOutput> ChildOutput::open(const std::string &log, int64_t number, bool isFirst) {
  int descriptor = -1;
  if (!log.empty()) {
    descriptor = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (descriptor < 0)
      return Status::error(ErrorKind::Io, "the log '" + log + "' cannot be opened: " + std::strerror(errno) + "; name another folder");
  }
  return ChildOutput(isFirst || !log.empty() ? "" : "[" + std::to_string(number) + "] ", isFirst, descriptor);
}

ChildOutput::ChildOutput(ChildOutput &&other) noexcept
    : prefix(other.prefix), isFirst(other.isFirst), log(std::exchange(other.log, -1)), line(std::move(other.line)), kept(std::move(other.kept)) {}

ChildOutput::~ChildOutput() {
  if (log >= 0)
    ::close(log);
}

void ChildOutput::addOutput(std::string_view text) {
  if (log >= 0)
    writeAll(log, text);
  if (isFirst)
    writeAll(STDOUT_FILENO, text);
  else if (log < 0)
    addErrors(text);
}

void ChildOutput::addLine(std::string_view text) {
  const bool isError = text.substr(0, toolName().size() + 8) == toolName() + ": error[";
  isRepeated |= isError && !kept.empty();
  if (isError || !kept.empty())
    kept += isRepeated ? "" : text;
  else if (isFirst || log < 0)
    writeAll(STDERR_FILENO, prefix + std::string(text));
}

void ChildOutput::addErrors(std::string_view text) {
  if (log >= 0)
    writeAll(log, text);
  line += text;
  for (size_t end; (end = line.find('\n')) != std::string::npos; line.erase(0, end + 1))
    addLine(std::string_view(line).substr(0, end + 1));
}

void ChildOutput::end() {
  if (!line.empty())
    addLine(line + "\n");
  line.clear();
}

} // namespace hpc
