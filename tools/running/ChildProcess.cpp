// Between fork and exec only calls that a signal handler may make.
#include "tools/running/ChildProcess.h"

#include "tools/ExitCode.h"
#include "tools/running/ParentProcess.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/prctl.h>
#include <unistd.h>

namespace hpc {

namespace {
struct Pipe {
  int ends[2] = {-1, -1}; ///< to read, to write

  ~Pipe() {
    for (int end : ends)
      if (end >= 0)
        ::close(end);
  }
  bool open() { return ::pipe2(ends, O_CLOEXEC) == 0 && ::fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0; }
  int takeReader() { return std::exchange(ends[0], -1); }
};
} // namespace

static Status startError(int error) {
  return Status::error(ErrorKind::Io, std::string("a process cannot be started: ") + std::strerror(error) + "; look at the limits of processes and files");
}

/// The variables of this process, those of `changes` in place of its own.
static std::vector<std::string> environmentWith(const std::vector<std::pair<std::string, std::string>> &changes) {
  std::vector<std::string> all;
  for (char **entry = environ; *entry; ++entry) {
    const std::string name = std::string(*entry).substr(0, std::strcspn(*entry, "="));
    bool isChanged = false;
    for (const auto &change : changes)
      isChanged |= change.first == name;
    if (!isChanged)
      all.push_back(*entry);
  }
  for (const auto &[name, value] : changes)
    all.push_back(name + "=" + value);
  return all;
}

static std::vector<char *> pointersTo(std::vector<std::string> &texts) {
  std::vector<char *> pointers;
  for (std::string &text : texts)
    pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

Expected<ChildProcess> startChild(const ChildOptions &options) {
  std::error_code none;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", none).string();
  const int input = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  Pipe output, errors, steps;
  if (program.empty() || input < 0 || !errors.open() || !steps.open() || (!options.sharesOutput && !output.open()))
    return startError(errno);
  std::vector<std::pair<std::string, std::string>> variables = options.variables;
  const int parent = int(::getpid());
  variables.emplace_back(parentVariable, std::to_string(parent) + ":" + std::to_string(steps.ends[1]));
  std::vector<std::string> arguments = options.arguments, environment = environmentWith(variables);
  const std::vector<char *> argumentPointers = pointersTo(arguments), environmentPointers = pointersTo(environment);
  const std::string missing = toolName() + ": error[io]: '" + program + "' cannot be started any more\n";
  ChildProcess child;
  child.pid = ::fork();
  if (child.pid < 0) {
    const int error = errno;
    ::close(input);
    return startError(error);
  }
  if (child.pid == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent)
      ::_exit(1);
    ::dup2(input, STDIN_FILENO);
    if (output.ends[1] >= 0)
      ::dup2(output.ends[1], STDOUT_FILENO);
    ::dup2(errors.ends[1], STDERR_FILENO);
    ::fcntl(steps.ends[1], F_SETFD, 0);
    ::signal(SIGUSR1, SIG_IGN);
    sigset_t nothing;
    ::sigemptyset(&nothing);
    ::sigprocmask(SIG_SETMASK, &nothing, nullptr);
    ::execve(program.c_str(), argumentPointers.data(), environmentPointers.data());
    [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, missing.data(), missing.size());
    ::_exit(1);
  }
  ::close(input);
  child.output = output.takeReader();
  child.errors = errors.takeReader();
  child.steps = steps.takeReader();
  return child;
}

} // namespace hpc
