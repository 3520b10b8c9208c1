// The plan as plain structs: what `lower` builds, `place` completes, PlanCheck checks and the executor runs.
// It is a contract: plan.proto is its file form, one message a struct, and a field here means the same there.
//
// Ranks. A plan has `stages` pipeline stages and, within each stage, one rank per coordinate of `axes` (row-major, the last
// axis fastest). rank = stage * ranksPerStage + coordinate. All ranks of a stage share its programs (SPMD); what
// differs between them is a ByCoord table.
#pragma once

#include "runtime/base/DType.h"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace hpc::plan {

/// Raised whenever an older reader would misread a plan.
constexpr int majorVersion = 1;
constexpr int minorVersion = 0;

/// A number that may depend on the rank's coordinate within its stage and on the micro-batch.
/// 1 value: the same everywhere. R values (R = ranks per stage): by coordinate. R*M values: [microBatch][coordinate].
struct ByCoord {
  std::vector<int64_t> values = {0};

  ByCoord() = default;
  ByCoord(int64_t value) : values{value} {}
  int64_t at(int64_t coordinate, int64_t microBatch, int64_t ranksPerStage) const {
    if (values.size() == 1)
      return values[0];
    if (int64_t(values.size()) == ranksPerStage)
      return values[coordinate];
    return values[microBatch * ranksPerStage + coordinate];
  }
};

/// Which part of a global row-major tensor a rank holds. The tensor is first seen as `view` (sizes whose product is the
/// number of elements: its sub-dims, major to minor), then its view dims are permuted, then a box is cut. Per view dim d
/// the rank holds indices start[d] .. start[d]+extent[d]-1 of view[d]; its local box is box[d] >= extent[d] wide, the rest is
/// padding. The local buffer is row-major over box[permutation[0]], box[permutation[1]], ...
struct Slice {
  std::vector<int64_t> view;
  std::vector<int64_t> permutation; ///< empty: identity
  std::vector<ByCoord> start;       ///< per view dim, in view order
  std::vector<ByCoord> extent;      ///< per view dim; 0 is legal
  std::vector<int64_t> box;         ///< per view dim, the same on all ranks
};

enum class MemoryClass : uint8_t {
  Weight, ///< filled once, when the weights are bound; lives as long as the session
  State,  ///< lives across steps
  Slot,   ///< `slots` copies, one per micro-batch in flight: offset + slot * slotStride
  Temp,   ///< lives within one run of one program
};

/// A piece of a rank's memory. Offsets are assigned by `place`: Weight and State offsets count from the start of the rank's
/// weight arena and state arena, Slot and Temp offsets from the start of its work arena.
struct Buffer {
  std::string name;       ///< the ONNX value or node it holds, for people
  DType dtype = DType::F32;
  std::vector<int64_t> box; ///< local shape, padding included
  MemoryClass memory = MemoryClass::Temp;
  int64_t bytes = 0;  ///< product of box times element size; 0 is legal
  int64_t offset = -1; ///< multiple of 64; -1: not placed yet
  int64_t slots = 1;
  int64_t slotStride = 0; ///< >= bytes when slots > 1
};

/// A place in a buffer of the same stage.
struct Ref {
  int32_t buffer = -1;    ///< index into Stage::buffers
  int64_t byteOffset = 0;
};

/// Why a collective or a transfer exists: what --explain prints.
struct Reason {
  std::string node;  ///< ONNX node
  std::string path;  ///< module path, may be empty
  std::string cause; ///< the rule or annotation that made it necessary
  std::string avoid; ///< what would avoid it
};

/// C = A * B (row-major, f32), for every index of `batch`. Strides are in elements; a batch stride of 0 broadcasts.
/// Extents m, n, k may be 0 at a coordinate: k = 0 writes zeros, m = 0 or n = 0 does nothing.
struct Gemm {
  Ref a, b, c;
  ByCoord m, n, k;
  int64_t lda = 0, ldb = 0, ldc = 0;
  bool transposeA = false; ///< A is stored [k, m]
  bool transposeB = false; ///< B is stored [n, k]
  std::vector<int64_t> batch; ///< batch dims, major to minor; empty: one product
  std::vector<int64_t> strideA, strideB, strideC; ///< per batch dim
};

/// A call of a generated function of Plan::code:
///   void symbol(void *const *args, const int64_t *scalars, int64_t begin, int64_t end)
/// which computes rows begin..end-1 of `rows`; rows may be computed in any order and on any thread.
struct Kernel {
  std::string symbol;
  std::vector<Ref> args;     ///< which of them are written: `writes`
  std::vector<bool> writes;  ///< per arg
  std::vector<int64_t> argBytes; ///< per arg: the bytes that the function may touch, for the checker
  std::vector<ByCoord> scalars;
  int64_t rows = 1;
};

/// memcpy between two places that do not overlap.
struct Copy {
  Ref src, dst;
  int64_t bytes = 0;
};

enum class CollectiveKind : uint8_t {
  AllReduce,     ///< dst[count] = reduction over the group of src[count], in rank order
  AllGather,     ///< dst[group*count] = the group's src[count], in group order
  ReduceScatter, ///< dst[count] = reduction of block `my position` of the group's src[group*count]
  AllToAll,      ///< src[group*count], dst[group*count]: block j of dst is block `my position` of member j's src
  Permute,       ///< dst[count] = src[count] of group member `source` (by coordinate)
};
enum class ReduceKind : uint8_t { Sum, Max, Min };

/// Groups: ranks of the stage whose coordinates agree on all axes but `axes`; position = row-major over `axes` as listed.
struct Collective {
  CollectiveKind kind = CollectiveKind::AllReduce;
  ReduceKind reduce = ReduceKind::Sum;
  std::vector<std::string> axes;
  DType dtype = DType::F32;
  int64_t count = 0; ///< elements, see CollectiveKind
  Ref src, dst;      ///< the same place, or no overlap
  ByCoord source;    ///< Permute only: position in the group
  Reason reason;
};

/// Point to point, posted here and completed by a Wait on `request`. Matching is by (sender, receiver, channel), in order.
/// A peer of -1 posts nothing (and its Wait returns at once). Requests are per slot: Wait in slot s completes the post
/// of slot s. The buffer must not be touched between post and wait (a send's may be read).
struct Send {
  Ref src;
  int64_t bytes = 0;
  ByCoord peer; ///< global rank
  int32_t channel = 0, request = 0;
  Reason reason;
};
struct Recv {
  Ref dst;
  int64_t bytes = 0;
  ByCoord peer;
  int32_t channel = 0, request = 0;
  Reason reason;
};
/// Completes the last post of `request` in this slot; returns at once when there is none.
struct Wait {
  int32_t request = 0;
};

/// Copies the rank's slice of graph input `input` for this micro-batch into dst; padding is zero.
struct LoadInput {
  int32_t input = 0;
  Ref dst;
  Slice slice;
};
/// Copies the rank's slice of graph output `output` from src into the global array, where `owner` is 1: every element has
/// exactly one owner.
struct StoreOutput {
  int32_t output = 0;
  Ref src;
  Slice slice;
  ByCoord owner;
};

using Action = std::variant<Gemm, Kernel, Copy, Collective, Send, Recv, Wait, LoadInput, StoreOutput>;

struct Instruction {
  Action action;
  std::string node; ///< ONNX node that it computes, for traces and errors
};

struct Program {
  std::string name; ///< "receive", "forward", "drain"
  std::vector<Instruction> instructions;
};

/// A weight of a stage: which tensor, which part, into which buffer.
struct WeightBinding {
  int32_t tensor = 0; ///< index into Plan::tensors
  int32_t buffer = 0; ///< a Weight buffer of the stage
  Slice slice;
};

/// One entry of a stage's schedule: run a program for a micro-batch, in a slot.
struct ScheduleStep {
  int32_t program = 0;
  int32_t microBatch = 0;
  int32_t slot = 0;
};

struct Stage {
  std::vector<Buffer> buffers;
  std::vector<WeightBinding> weights;
  std::vector<Program> programs;
  std::vector<ScheduleStep> schedule;
  int32_t requests = 0;                 ///< number of request ids
  int64_t weightBytes = 0, stateBytes = 0, workBytes = 0; ///< arena sizes; set by `place`
};

struct Axis {
  std::string name;
  int64_t size = 1;
};

/// A file that holds weights, relative to the folder of the plan unless absolute.
struct WeightFile {
  std::string path;
};

/// A stored tensor, row-major. Its bytes are file[offset .. offset+bytes), or `inlineData` when file is -1.
struct Tensor {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  int32_t file = -1;
  int64_t offset = 0, bytes = 0;
  std::vector<uint64_t> hashes; ///< XXH3 (64 bits) of every MiB, the last one shorter
  std::string inlineData;
};

/// A graph input or output, as the user sees it.
struct Port {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
};

struct Plan {
  std::string model;    ///< name for people
  std::vector<Axis> axes; ///< within a stage, e.g. dp, tp; never empty sizes
  int64_t microBatches = 1;
  std::vector<Port> inputs, outputs;
  std::vector<WeightFile> files;
  std::vector<Tensor> tensors;
  std::vector<Stage> stages;
  std::string code;                     ///< ELF shared object, empty when no kernel is used
  std::vector<std::string> cpuFeatures; ///< what the code needs, names as in /proc/cpuinfo

  int64_t ranksPerStage() const {
    int64_t ranks = 1;
    for (const Axis &axis : axes)
      ranks *= axis.size;
    return ranks;
  }
  int64_t worldSize() const { return ranksPerStage() * int64_t(stages.size()); }
};

} // namespace hpc::plan
