// What the simulation of a plan needs of each program: only its communication, and its uses of buffers that live across
// programs or are sent and received. Everything else cannot block and is checked without running (PlanCheck.h).
#pragma once

#include "runtime/plan/Plan.h"

#include <cstdint>
#include <vector>

namespace hpc::plan {

/// A use of a tracked region.
struct TrackedUse {
  int32_t tracked = -1; ///< index into StageStreams::tracked
  int64_t begin = 0, end = 0;
  bool write = false;
  const ByCoord *when = nullptr; ///< BufferAccess::when
};

enum class OpKind : uint8_t {
  Touch, ///< an instruction of the rank's own that uses tracked buffers
  Work,  ///< stands for all that the program computes: one unit of the clock
  Collective,
  Send,
  Recv,
  Wait,
};

struct StreamOp {
  OpKind kind = OpKind::Touch;
  int32_t instruction = 0;
  const ByCoord *when = nullptr; ///< null: everywhere
  int32_t signature = -1;        ///< Collective: index into StageStreams::groupOf
  std::vector<TrackedUse> uses;  ///< reads before writes
};

/// What must be true of a tracked buffer when it is read.
enum class Content : uint8_t {
  Any,        ///< nothing: only its flights matter
  Written,    ///< something has written it: Step buffers, Session buffers that start with nothing
  MicroBatch, ///< it holds data of the micro-batch that reads it
};

/// A region of a buffer (Regions.h) whose content the simulation follows, one state per copy.
struct TrackedBuffer {
  int32_t buffer = -1;
  int32_t firstState = 0; ///< of RankState::holds; slot s is firstState + s
  int32_t slots = 1;
  Content content = Content::Any;
};

struct StageStreams {
  std::vector<std::vector<StreamOp>> programs;
  std::vector<TrackedBuffer> tracked;
  int32_t states = 0;
  std::vector<std::vector<int32_t>> groupOf; ///< per list of axes: coordinate -> group, numbered from 0
  std::vector<int64_t> groupSizes;           ///< per list of axes
};

StageStreams buildStreams(const Plan &plan, const Stage &stage);

} // namespace hpc::plan
