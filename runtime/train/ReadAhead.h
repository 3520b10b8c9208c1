// The data of the next step, read while this one runs: a thread of its own fills them, so a step waits only for what is late.
#pragma once

#include "runtime/train/StepData.h"

#include <future>
#include <thread>

namespace hpc {

class ReadAhead {
public:
  /// Data outlive it.
  explicit ReadAhead(const StepData &data) : data(&data) {}
  ~ReadAhead();
  ReadAhead(const ReadAhead &) = delete;

  /// The inputs of a step, as StepData::fill fills them; then the next step's are begun. `inputs` keeps the step scalars that it has.
  Status take(int64_t step, std::vector<Array> &inputs);

private:
  struct Filled {
    Status status;
    std::vector<Array> inputs;
  };
  void begin(int64_t step, size_t count);

  const StepData *data;
  std::optional<int64_t> coming; ///< the step that `next` is of
  std::future<Filled> next;
  std::thread thread; ///< idle but for one step's data at a time
  std::packaged_task<Filled()> task;
  std::mutex mutex;
  std::condition_variable changed;
  bool ends = false;
};

} // namespace hpc
