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
    int32_t step, instruction; ///< index into the stage's schedule and into the program's instructions; -1: all of the program
    Clock::time_point start, end;
    bool isTransfer = false; ///< under way beside what the rank does: on a line of its own
  };

  /// `isMeasured`: events come while ranks run, and take no memory then.
  explicit Trace(const plan::Plan &plan, bool isMeasured = true);

  /// Drops the events of the run before.
  void begin();
  void add(int64_t rank, const Event &event) { events[size_t(rank)].push_back(event); }
  /// An event by its seconds from the beginning.
  void add(int64_t rank, int32_t step, int32_t instruction, double start, double end, bool isTransfer);
  /// Of the last run, in order; none of a rank that another process has.
  const std::vector<Event> &of(int64_t rank) const { return events[size_t(rank)]; }

  const plan::Plan &plan() const { return traced; }
  /// One process a stage, one thread a rank and another one for its transfers; args: ONNX node, micro-batch, bytes.
  std::string json() const;

private:
  const plan::Plan &traced;
  Clock::time_point origin;
  std::vector<std::vector<Event>> events; ///< by rank
};

} // namespace hpc
