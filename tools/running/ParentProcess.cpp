// The parent's number is compared, since programs that a child starts inherit the variable.
#include "tools/running/ParentProcess.h"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

namespace hpc {

namespace {
class StepReports : public RunObserver {
public:
  explicit StepReports(int pipe) : pipe(pipe) { ::fcntl(pipe, F_SETFD, FD_CLOEXEC); }

  Status started(const RunState &state) override { return send({state.steps - 1, false}); }
  Status stepped(const StepReport &report, const RunState &state) override { return send({report.step, true}); }

private:
  /// A parent that has gone ends this process anyway.
  Status send(const StepRecord &record) const {
    [[maybe_unused]] ssize_t written = ::write(pipe, &record, sizeof(record));
    return Status::success();
  }
  const int pipe;
};
} // namespace

/// The descriptor of the pipe to the parent; -1: there is none.
static int pipeToParent() {
  const char *text = std::getenv(parentVariable);
  int parent = 0, pipe = -1;
  return text && std::sscanf(text, "%d:%d", &parent, &pipe) == 2 && parent == int(::getppid()) ? pipe : -1;
}

bool hasParent() { return pipeToParent() >= 0; }

std::unique_ptr<RunObserver> makeStepReports() {
  const int pipe = pipeToParent();
  return pipe < 0 ? nullptr : std::make_unique<StepReports>(pipe);
}

} // namespace hpc
