// The lines of PaddleFleetX's pretraining, for programs that parse them.
#pragma once

#include "runtime/train/RunObserver.h"
#include "runtime/train/observers/RunFacts.h"

#include <chrono>

namespace hpc {

/// "[2026-11-25 12:40:00,833] [    INFO] - global step 1, epoch: 0, batch: 0, loss: 11.083364487, avg_reader_cost: 0.23392 sec, avg_batch_cost:
/// 2.05344 sec, speed: 0.49 step/s, ips_total: 3989 tokens/s, ips: 499 tokens/s, learning rate: 5.55556e-09" in one line: time of day of the
/// machine; steps from 1; loss and rate of that step; costs and speeds are means over the steps since the line before; ips is that of a rank.
class LogLines : public RunObserver {
public:
  using Clock = std::function<std::chrono::system_clock::time_point()>;
  LogLines(const RunFacts &facts, TextSink print, Clock now = std::chrono::system_clock::now)
      : facts(facts), print(std::move(print)), now(std::move(now)) {}

  Status stepped(const StepReport &report, const RunState &state) override;
  Status evaluated(const EvaluationReport &report, int64_t step) override;
  Status saved(const SaveReport &report) override;
  /// Another line, after the time.
  void line(const std::string &text) const;

private:
  const RunFacts facts;
  const TextSink print;
  const Clock now;
  StepMeter meter; ///< since the last line
};

} // namespace hpc
