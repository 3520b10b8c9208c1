// Facts about a run for its lines, and the speed of its steps.
#pragma once

#include "runtime/train/TrainingRun.h"

#include <functional>

namespace hpc {

/// Writes text as it is, with its own ends of lines.
using TextSink = std::function<void(const std::string &)>;

/// Facts about the whole run and all ranks.
struct RunFacts {
  int64_t steps = 0; ///< in all, those before a checkpoint included
  int64_t ranks = 1;
  int64_t items = 0;           ///< of a step: the ids of all its sequences, padding included, or rows where the model takes no ids
  std::string item = "tokens"; ///< or "samples"
  double flops = 0;            ///< of a step's products
  double peak = 0;             ///< flops a second of all ranks together; 0: unknown
  /// Lines are written after each so many steps, counted from the beginning of the run, and after the last one.
  int64_t every = 1;

  bool hasLine(const StepReport &report) const { return (report.step + 1) % every == 0 || report.step + 1 == steps; }
};

/// Means over some steps.
class StepMeter {
public:
  void add(const StepReport &report) {
    ++steps;
    milliseconds += report.milliseconds;
    readerSeconds += report.readerSeconds;
  }
  /// Seconds of a step, its wait for data included.
  double secondsOfStep() const { return milliseconds / 1000 / double(steps); }
  double secondsOfReader() const { return readerSeconds / double(steps); }
  double stepsPerSecond() const { return 1 / secondsOfStep(); }
  double itemsPerSecond(const RunFacts &facts) const { return double(facts.items) * stepsPerSecond(); }
  /// Model flops utilisation, from 0 to 1: the flops of the step's products over what the machine could do in that time. Source: PaLM
  /// (Chowdhery et al. 2022, appendix B), but with the plan's own products, those that --recompute repeats included. nullopt: no peak is known.
  std::optional<double> utilisation(const RunFacts &facts) const {
    return facts.peak > 0 ? std::optional<double>(facts.flops * stepsPerSecond() / facts.peak) : std::nullopt;
  }

private:
  int64_t steps = 0;
  double milliseconds = 0, readerSeconds = 0;
};

} // namespace hpc
