// The data of the next step, read while this one runs: a step waits only for data that are late.
#pragma once

#include "runtime/train/StepData.h"

#include <future>

namespace hpc {

class ReadAhead {
public:
  /// Data outlive it.
  explicit ReadAhead(const StepData &data) : data(&data) {}

  /// The inputs of a step, as StepData::fill fills them. Then a thread begins with those of the next step.
  Status take(int64_t step, std::vector<Array> &inputs);

private:
  struct Filled {
    Status status;
    std::vector<Array> inputs; ///< without step scalars, whose arrays hold nothing
  };
  const StepData *data;
  int64_t coming = -1;      ///< the step that `next` is of
  std::future<Filled> next; ///< its end waits for the thread
};

} // namespace hpc
