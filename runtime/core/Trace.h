// What each rank did when, for people: written as Chrome's trace JSON, which Perfetto opens.
// Each rank writes its own list, sized before the run, so that tracing costs two clock reads an instruction.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/core/Backend.h"

#include <chrono>

namespace hpc {

/// Bytes that an instruction reads and writes at the rank that touches most; of a collective its payload.
int64_t bytesOf(const plan::Instruction &instruction, const plan::Plan &plan);

class Trace {
public:
  using Clock = std::chrono::steady_clock;
  struct Event {
    int32_t step, instruction; ///< index into the stage's schedule and into the program's instructions
    Clock::time_point start, end;
  };

  explicit Trace(const plan::Plan &plan);

  /// Drops the events of the run before.
  void begin();
  void add(int64_t rank, const Event &event) { events[size_t(rank)].push_back(event); }
  /// Of the last run, in order; none of a rank that another process has.
  const std::vector<Event> &of(int64_t rank) const { return events[size_t(rank)]; }

  const plan::Plan &plan() const { return traced; }
  /// One process a stage, one thread a rank; args: ONNX node, micro-batch, bytes.
  std::string json() const;

private:
  const plan::Plan &traced;
  Clock::time_point origin;
  std::vector<std::vector<Event>> events; ///< by rank
};

} // namespace hpc
