// A run in one line of a terminal, which is drawn again as the run goes on; evaluations and epochs leave a line of their own above it.
#pragma once

#include "runtime/train/RunObserver.h"
#include "runtime/train/observers/RunFacts.h"

#include <chrono>

namespace hpc {

/// "step 12/100 [##        ] loss 3.2145, 8192 tokens/s, ETA 0:02:13". Speed and ETA are those of this process's steps so far; the ETA counts
/// evaluations and saves in proportion.
class ProgressLine : public RunObserver {
public:
  struct Terminal {
    TextSink print;
    std::function<int64_t()> columns; ///< now; 0: unknown
    bool hasColour = true;            ///< NO_COLOR is not set
    std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  };
  ProgressLine(const RunFacts &facts, Terminal terminal) : facts(facts), terminal(std::move(terminal)) {}

  Status started(const RunState &state) override;
  Status stepped(const StepReport &report, const RunState &state) override;
  Status evaluated(const EvaluationReport &report, int64_t step) override;
  Status saved(const SaveReport &report) override;
  Status ended(const RunState &state) override;
  /// Takes the line away, so that other text may be printed; the next step draws it again.
  void clear();
  /// A line of its own above.
  void line(const std::string &text);

private:
  const RunFacts facts;
  const Terminal terminal;
  std::chrono::steady_clock::time_point begin, lastDrawn;
  int64_t first = 0; ///< step of this process
  StepMeter meter;
  bool isDrawn = false;
};

} // namespace hpc
