// A row without a task, or whose task is done, goes along with any id: nothing reads it.
#include "runtime/generate/Loop.h"

#include <algorithm>
#include <chrono>
#include <numeric>

namespace hpc::generate {

std::vector<std::vector<size_t>> batchesOf(const std::vector<Task> &tasks, int64_t rows) {
  std::vector<size_t> order(tasks.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return std::pair(tasks[a].prompt.size(), a) < std::pair(tasks[b].prompt.size(), b); });
  std::vector<std::vector<size_t>> batches;
  int64_t taken = rows;
  for (size_t task : order) {
    const int64_t own = tasks[task].continuation->rows();
    if (taken + own > rows) {
      batches.emplace_back();
      taken = 0;
    }
    batches.back().push_back(task);
    taken += own;
  }
  return batches;
}

namespace {

class Clock {
public:
  explicit Clock(double &seconds) : seconds(seconds) {}
  ~Clock() { seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); }

private:
  double &seconds;
  const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

/// A task in a batch.
struct Sequence {
  size_t number; ///< of the task
  Task &task;
  int64_t first; ///< row
  bool hasBegun = false;

  int64_t rows() const { return task.continuation->rows(); }
  int64_t length() const { return int64_t(task.prompt.size()); }
  bool isDone() const { return task.continuation->isDone(); }
};

class Batch {
public:
  Batch(Decoder &decoder, const LoopHooks &hooks, LoopTimes &times) : decoder(decoder), shape(decoder.shape()), hooks(hooks), times(times) {}

  void add(size_t number, Task &task) {
    sequences.push_back({number, task, taken});
    taken += sequences.back().rows();
  }

  Status run() {
    int64_t position = sequences.front().length();
    for (const Sequence &sequence : sequences)
      position = std::min(position, sequence.length());
    HPC_RETURN_IF_ERROR(prefill(position));
    for (; !isInterrupted; ++position) {
      Clock clock(times.decodeSeconds);
      bool goesOn = false;
      HPC_RETURN_IF_ERROR(chooseIds(position, goesOn));
      if (!goesOn)
        return Status::success();
      if ((isInterrupted = hooks.isInterrupted()))
        break;
      HPC_RETURN_IF_ERROR(step(position));
    }
    for (Sequence &sequence : sequences)
      if (sequence.hasBegun && !sequence.isDone())
        end(sequence, FinishReason::Interrupted);
    return Status::success();
  }

  bool isInterrupted = false;

private:
  /// Positions 0 .. length - 1, which all prompts have.
  Status prefill(int64_t length) {
    std::vector<int64_t> chunk(size_t(shape.batch * shape.chunk));
    for (int64_t begin = 0; begin < length; begin += shape.chunk) {
      if ((isInterrupted = hooks.isInterrupted()))
        return Status::success();
      Clock clock(times.prefillSeconds);
      const int64_t count = std::min(shape.chunk, length - begin);
      std::fill(chunk.begin(), chunk.end(), 0);
      for (const Sequence &sequence : sequences)
        for (int64_t row = sequence.first; row < sequence.first + sequence.rows(); ++row)
          std::copy_n(sequence.task.prompt.begin() + begin, count, chunk.begin() + row * shape.chunk);
      HPC_RETURN_IF_ERROR(decoder.prefill(chunk, begin, count - 1, logits));
      times.prefilled += taken * count;
    }
    return Status::success();
  }

  void end(Sequence &sequence, FinishReason reason) {
    sequence.task.continuation->end(reason);
    hooks.onDone(sequence.number);
  }

  /// Fills `ids` with those at `position`, and `origins`. `goesOn`: some are to be computed.
  Status chooseIds(int64_t position, bool &goesOn) {
    ids.assign(size_t(shape.batch), 0);
    origins.resize(size_t(shape.batch));
    std::iota(origins.begin(), origins.end(), int64_t(0));
    for (Sequence &sequence : sequences) {
      if (sequence.isDone())
        continue;
      if (position < sequence.length())
        std::fill_n(ids.begin() + sequence.first, sequence.rows(), sequence.task.prompt[size_t(position)]);
      else
        HPC_RETURN_IF_ERROR(choose(sequence, position));
      goesOn |= !sequence.isDone();
    }
    return Status::success();
  }

  Status choose(Sequence &sequence, int64_t position) {
    Continuation &continuation = *sequence.task.continuation;
    choices.resize(size_t(sequence.rows()));
    HPC_RETURN_IF_ERROR(continuation.choose(logits.data() + sequence.first * shape.vocabulary, shape.vocabulary, choices));
    sequence.hasBegun = true;
    if (sequence.rows() == 1)
      hooks.onId(sequence.number, choices.front().id);
    if (continuation.isDone()) {
      hooks.onDone(sequence.number);
      return Status::success();
    }
    if (position == shape.maxLength) {
      end(sequence, FinishReason::Length);
      return Status::success();
    }
    for (int64_t row = 0; row < sequence.rows(); ++row) {
      ids[size_t(sequence.first + row)] = choices[size_t(row)].id;
      origins[size_t(sequence.first + row)] = sequence.first + choices[size_t(row)].from;
    }
    return Status::success();
  }

  Status step(int64_t position) {
    for (int64_t row = 0; row < shape.batch; ++row)
      if (origins[size_t(row)] != row) {
        HPC_RETURN_IF_ERROR(decoder.reorder(origins));
        break;
      }
    HPC_RETURN_IF_ERROR(decoder.decode(ids, position, logits));
    for (const Sequence &sequence : sequences)
      times.decoded += sequence.isDone() ? 0 : sequence.rows();
    return Status::success();
  }

  Decoder &decoder;
  const DecoderShape shape;
  const LoopHooks &hooks;
  LoopTimes &times;
  std::vector<Sequence> sequences;
  int64_t taken = 0; ///< rows
  std::vector<float> logits;
  std::vector<int64_t> ids, origins; ///< by row; the row whose caches it continues
  std::vector<Choice> choices;
};

} // namespace

Expected<LoopTimes> runLoop(Decoder &decoder, std::vector<Task> &tasks, const LoopHooks &hooks) {
  LoopTimes times;
  for (const std::vector<size_t> &numbers : batchesOf(tasks, decoder.shape().batch)) {
    Batch batch(decoder, hooks, times);
    for (size_t number : numbers)
      batch.add(number, tasks[number]);
    HPC_RETURN_IF_ERROR(batch.run());
    if (batch.isInterrupted)
      break;
  }
  return times;
}

} // namespace hpc::generate
