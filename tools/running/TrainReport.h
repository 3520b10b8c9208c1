// The lines and files that tell of a run, by the flags.
#pragma once

#include "runtime/train/RunObserver.h"
#include "tools/flags/Arguments.h"

namespace hpc {

struct ReportFlags {
  int64_t every = 1;
  std::string format; ///< "bar", "step", "paddlefleetx"; "": bar on a terminal, else `fallback`
  std::string fallback = "step";
  bool quiet = false;
  bool summarizes = false; ///< lines about memory before the run, and about times after it
  double spike = 6;
  std::string tensorBoard;     ///< folder; "": none
  std::optional<double> peak;  ///< flops a second of one rank's device, for MFU
};

ReportFlags readReportFlags(const Arguments &arguments);
Status checkReportFlags(const Arguments &arguments, const ReportFlags &flags);

/// The observers of a run of `steps` steps in all. `metrics`: file, or ""; `goesOn`: it and others keep what they have of steps before. Plan and data
/// outlive them.
std::vector<std::unique_ptr<RunObserver>> makeObservers(const ReportFlags &flags, const std::string &metrics, bool goesOn, int64_t steps,
                                                        const plan::Plan &plan, const StepData &data);

/// The peak of a rank on this machine, in flops a second, in products of the type that most of the plan's have; measured, which takes a
/// fraction of a second. `threads`: of this process's ranks, and of each.
Expected<double> measurePeak(const plan::Plan &plan, int64_t ranks, int64_t threads);

} // namespace hpc
