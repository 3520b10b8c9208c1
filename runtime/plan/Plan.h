// The plan as plain structs: what `lower` builds, `place` completes, PlanCheck checks and the executor runs.
// It is a contract: plan.proto is its file form, one message a struct, and a field here means the same there.
//
// Ranks. A plan has `stages` pipeline stages and, within each stage, one rank per coordinate of `axes` (row-major, the
// last axis fastest). rank = stage * ranksPerStage + coordinate. All ranks of a stage share its programs (SPMD); what
// differs between them is a ByCoord table.
#pragma once

#include "runtime/base/DType.h"
#include "runtime/base/ReduceKind.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace hpc::plan {

/// The version of a plan's file. The major number is raised whenever an older reader would misread a plan.
struct Version {
  int major, minor;
  bool operator==(const Version &other) const { return major == other.major && minor == other.minor; }
  bool operator<(const Version &other) const { return major != other.major ? major < other.major : minor < other.minor; }
};
/// Older plans are refused: the model is compiled again.
constexpr Version leastVersion = {2, 8};
/// Entries, and in plans with entries numbers that vary by step. Such a plan has no schedule of its own, so a reader of 2.8
/// refuses it.
constexpr Version entriesVersion = {2, 9};
/// Operands at an offset from their place (Operand::offset), which an older reader would pass over.
constexpr Version offsetsVersion = {3, 0};
/// Places that differ by micro-batch (Ref::microBatchStride), likewise.
constexpr Version newestVersion = {4, 0};

/// A number that may depend on the rank's coordinate within its stage and on the micro-batch.
/// 1 value: the same everywhere. R values (R = ranks per stage): by coordinate. R*M values: [microBatch][coordinate].
/// Scalars of kernels and offsets of copies may vary by step as well: each run gives `input`, a step scalar with a range.
struct ByCoord {
  std::vector<int64_t> values = {0};
  int64_t scale = 0;  ///< the number is its value here + scale * the input's; 0: it is its value
  int32_t input = 0;  ///< of the plan, with Port::largest

  ByCoord() = default;
  ByCoord(int64_t value) : values{value} {}
  bool varies() const { return scale != 0; }
  /// Its value: where it varies by step, that of a step in which the input is 0.
  int64_t at(int64_t coordinate, int64_t microBatch, int64_t ranksPerStage) const {
    if (values.size() == 1)
      return values[0];
    if (int64_t(values.size()) == ranksPerStage)
      return values[coordinate];
    return values[microBatch * ranksPerStage + coordinate];
  }
};

/// Whether a table has one value everywhere, in every step.
inline bool isEverywhere(const ByCoord &table, int64_t value) {
  if (table.varies())
    return false;
  for (int64_t entry : table.values)
    if (entry != value)
      return false;
  return true;
}

/// Which part of a global row-major tensor a rank holds. The tensor is first seen as `view` (sizes whose product is the
/// number of elements: its sub-dims, major to minor), then a box is cut. Per view dim d the rank holds indices
/// start[d] .. start[d]+extent[d]-1 of view[d]; its local box is box[d] >= extent[d] wide, the rest is padding. The
/// local buffer is row-major over box.
struct Slice {
  std::vector<int64_t> view;
  std::vector<ByCoord> start;  ///< per view dim
  std::vector<ByCoord> extent; ///< per view dim; 0 is legal
  std::vector<int64_t> box;    ///< per view dim, the same on all ranks
};

/// How long the content of a buffer lasts.
enum class Lifetime : uint8_t {
  Session,    ///< across steps: weights, states. What it starts with stands in a Binding
  Step,       ///< one step: accumulators, values that are computed once a step. Written before it is read in each step
  MicroBatch, ///< from one program of a micro-batch to another: `slots` copies, micro-batch m has copy m % slots
  Program,    ///< within one run of one program; shares its memory with others that do not live at the same time
};

enum class Space : uint8_t {
  Device, ///< where instructions compute
  Host,   ///< beside the device, for what is offloaded: only Copy touches it
};

/// A piece of a rank's memory. `place` gives it its offset, which counts from the start of its arena (arenaOf).
struct Buffer {
  std::string name; ///< the ONNX value or node it holds, for people
  DType dtype = DType::F32;
  std::vector<int64_t> box; ///< local shape, padding included
  Lifetime lifetime = Lifetime::Program;
  Space space = Space::Device;
  int64_t bytes = 0;      ///< product of box times element size; 0 is legal
  int64_t offset = -1;    ///< multiple of 64; -1: not placed yet
  int64_t slots = 1;      ///< 1 but for MicroBatch
  int64_t slotStride = 0; ///< >= bytes when slots > 1
};

/// The allocations of a rank. Session memory keeps its content between steps, work memory does not.
enum class ArenaKind : uint8_t { Session, Work, Host };
inline ArenaKind arenaOf(const Buffer &buffer) {
  return buffer.space == Space::Host            ? ArenaKind::Host
         : buffer.lifetime == Lifetime::Session ? ArenaKind::Session
                                                : ArenaKind::Work;
}

/// A place in a buffer of the same stage.
struct Ref {
  int32_t buffer = -1; ///< index into Stage::buffers
  int64_t byteOffset = 0;
  /// Bytes from the place of a micro-batch to that of the next; >= 0. Only in Session buffers, which have no slots: a state has the
  /// rows of all micro-batches, and the programs of each see its own.
  int64_t microBatchStride = 0;
};

/// Why a collective or a transfer exists: what --explain prints.
struct Reason {
  std::string node;  ///< ONNX node
  std::string path;  ///< module path, may be empty
  std::string cause; ///< the rule or annotation that made it necessary
  std::string avoid; ///< what would avoid it
};

/// The windows of an image as a matrix [channels * sizes, counts] that is not in memory: row (c, k..) and column (o..) hold
/// image[c, o * stride + k * dilation - low..], 0 where that is outside. The image [channels, image..] lies without gaps.
struct Windows {
  int64_t channels = 0;
  std::vector<int64_t> image, sizes, counts, strides, dilations, low; ///< one per spatial dim

  bool operator==(const Windows &other) const;
  int64_t rowsOfChannel() const; ///< product of sizes
  int64_t columns() const;       ///< product of counts
  int64_t imageSize() const;     ///< elements of a channel
};

/// One matrix of a product, for every index of the product's batch. Strides are in elements.
struct Operand {
  Ref place;
  DType dtype = DType::F32;
  int64_t ld = 0;              ///< leading dim: the step from row to row as stored
  bool transpose = false;      ///< stored with its two dims exchanged
  std::vector<int64_t> stride; ///< per batch dim; 0 broadcasts
  /// The device may rearrange the buffer into a form of its own when the session is prepared. Only B, or A where B is
  /// windows, and only where all of a weight that is neither written nor saved is that operand of every product that reads
  /// it, stored the same way, and nothing else reads it (Packing.h).
  bool packed = false;
  ByCoord offset = {}; ///< bytes from place on; >= 0
};

enum class EpilogueKind : uint8_t {
  Bias,         ///< x + bias[column]
  BiasRelu,     ///< max(x + bias[column], 0)
  BiasGeluTanh, ///< GELU's tanh form of x + bias[column]
};

/// What a product does to each element of C before it stores it.
struct FusedEpilogue {
  EpilogueKind kind = EpilogueKind::Bias;
  Ref bias; ///< as many elements as C has columns, of C's type
};

/// C = A * B, or C += A * B where `addToC` is 1. A is [m, k], B [k, n], C [m, n], row-major.
/// Extents may be 0 at a coordinate: k = 0 writes zeros (where it adds: leaves C), m = 0 or n = 0 does nothing.
struct Gemm {
  Operand a, b, c; ///< floats, but b may be i8 beside sums in f32. c: neither transposed nor packed
  ByCoord m, n, k;
  DType accumulate = DType::F32; ///< of the sum over k
  ByCoord addToC;                ///< 0 or 1; an accumulator is written in its first micro-batch and added to later
  std::vector<int64_t> batch;    ///< batch dims, major to minor; empty: one product
  /// Where B is not in memory: `b.place` has the image, B is its windows (transposed, where b.transpose says so), b.ld is 0.
  std::optional<Windows> windows;
  /// Only where a device has taken over the kernel that followed (core/Specialise.h). No file has it.
  std::optional<FusedEpilogue> epilogue = {};
};

/// An argument of a kernel: a pointer.
struct KernelArg {
  Ref place;
  int64_t bytes = 0; ///< that the function may touch
  bool reads = true, writes = false;
};

/// How a device starts a kernel: a one-dimensional grid. All 0 in a plan without code for one.
struct Launch {
  ByCoord blocks;      ///< 0: nothing to do there, as with rows = 0; the kernel is not started
  ByCoord threads;     ///< of a block, 1..1024; what the code was made for
  ByCoord sharedBytes; ///< of dynamic shared memory, at most 48 KiB
};

enum class AttentionKind : uint8_t { Forward, Backward };

/// A tensor of rank 4 in an argument of a kernel: element (i0, i1, i2, i3) is number offset + sum of i * stride behind the
/// argument's place.
struct AttentionTensor {
  int32_t argument = -1; ///< of the kernel; -1: there is none
  DType dtype = DType::F32;
  int64_t offset = 0;
  std::array<int64_t, 4> stride = {0, 0, 0, 0}; ///< of batch, head, position, channel; 0 where the dim has one element
};

/// That a kernel is softmax(scale * query key^T + bias, masked) value, or its gradients: for a backend whose library has
/// that. Sizes are those of the boxes; padding is computed with, as by the kernel. Head i reads group i / (heads / groups).
struct Attention {
  AttentionKind kind = AttentionKind::Forward;
  int64_t batch = 0, heads = 0, groups = 0, queries = 0, keys = 0, depth = 0, width = 0;
  AttentionTensor query;                 ///< [batch, heads, queries, depth]
  AttentionTensor key;                   ///< [batch, groups, keys, depth]
  AttentionTensor value;                 ///< [batch, groups, keys, width]
  AttentionTensor bias;                  ///< added to the scaled scores; strides of what it broadcasts along are 0
  AttentionTensor gradient;              ///< Backward: [batch, heads, queries, width]
  std::vector<AttentionTensor> results;  ///< [batch, heads, queries, width]; Backward: of query, key and value
  double scale = 1;
  bool causal = false;      ///< query i sees keys j <= i + causalOffset
  int64_t causalOffset = 0; ///< >= 0
  bool guarded = false;     ///< what a query that sees nothing gets is 0, not NaN
};

/// That a kernel does no more to each element x of the one argument `product` than a library does to a matrix product
/// before it is stored, and writes one result as large: for a backend with such a library (core/Specialise.h). All
/// three are of one float type. Columns are as many as the bias has elements.
struct Epilogue {
  EpilogueKind kind = EpilogueKind::Bias;
  int32_t product = -1, bias = -1; ///< numbers of the kernel's arguments
};

/// A call of a generated function of Plan::modules. On the host:
///   void symbol(void *const *args, const int64_t *scalars, int64_t begin, int64_t end)
/// which computes rows begin..end-1 of `rows`; rows may be computed in any order and on any thread.
/// On a device, which computes all rows of one start:
///   .entry symbol(args[0], args[1], ..., scalars[0], ...)
/// every parameter 8 bytes: pointers into device memory, each a multiple of 16, then i64. passes/Kernels/README.md, "On a
/// device", says what the code promises.
/// Arguments do not overlap where one of them is written, but for a result in place: one argument that is read and one
/// that is written at the identical place (README.md, "Aliasing").
struct Kernel {
  std::string symbol;
  std::vector<KernelArg> args;
  std::vector<ByCoord> scalars;
  int64_t rows = 1;
  Launch launch;
  std::optional<Attention> attention; ///< in plans for devices, where the kernel is one
  std::optional<Epilogue> epilogue;   ///< likewise
  int64_t flops = 0; ///< of one run: of the products that it computes, by the ops' own count (an attention). Reported, not run by
  /// Operations of one run on elements, as vector code takes them: an addition is one, exp 24; the products of an attention count, too. Predicted by,
  /// not run by; 0: not counted.
  int64_t operations = 0;
};

/// memcpy between two places that do not overlap: of a state, say, the rows from a position on. Where the place in dst is not
/// the same everywhere, dst lives for the session and starts with something, since a step writes only a part of it.
struct Copy {
  Ref src, dst;
  int64_t bytes = 0;
  ByCoord srcOffset = {}, dstOffset = {}; ///< bytes from src and dst on; >= 0
};

/// dst = src, or dst += src where `add` is 1, element by element: what a micro-batch gives to an accumulator, where no
/// product adds it by itself. No overlap.
struct Accumulate {
  Ref src, dst;
  DType dtype = DType::F32;
  int64_t count = 0; ///< elements
  ByCoord add;       ///< 0 or 1
};

enum class CollectiveKind : uint8_t {
  AllReduce,     ///< dst[count] = reduction over the group of src[count], in rank order
  AllGather,     ///< dst[group*count] = the group's src[count], in group order
  ReduceScatter, ///< dst[count] = reduction of block `my position` of the group's src[group*count]
  AllToAll,      ///< src[group*count], dst[group*count]: block j of dst is block `my position` of member j's src
  Permute,       ///< dst[count] = src[count] of group member `source` (by coordinate)
};

/// Groups: ranks of the stage whose coordinates agree on all axes but `axes`; position = row-major over `axes` as
/// listed. Members start it in the same order as the other collectives of their group. With a request it may still run
/// when the instruction returns: until the Wait src is only read and dst is not touched.
struct Collective {
  CollectiveKind kind = CollectiveKind::AllReduce;
  ReduceKind reduce = ReduceKind::Sum;
  std::vector<std::string> axes;
  DType dtype = DType::F32;
  int64_t count = 0;    ///< elements, see CollectiveKind
  Ref src, dst;         ///< the same place, or no overlap
  ByCoord source;       ///< Permute only: position in the group
  int32_t request = -1; ///< >= 0: posted here, completed by a Wait on it
  Reason reason;
};

/// Point to point, posted here and completed by a Wait on `request`. Matching is by (sender, receiver, channel), in
/// order. A peer of -1 posts nothing (and its Wait returns at once). The buffer must not be touched between post and
/// wait (a send's may be read).
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
/// Completes the last post of `request`; returns at once when there is none. A request has slots as a buffer has: a
/// Wait in micro-batch m completes the post of slot m % slots.
struct Wait {
  int32_t request = 0;
};

/// Copies the rank's slice of graph input `input` for this micro-batch into dst; padding is zero.
struct LoadInput {
  int32_t input = 0;
  Ref dst;
  Slice slice;
};
/// Copies the rank's slice of graph output `output` from src into the global array, where `owner` is 1: every element
/// has exactly one owner.
struct StoreOutput {
  int32_t output = 0;
  Ref src;
  Slice slice;
  ByCoord owner;
};

using Action = std::variant<Gemm, Kernel, Copy, Accumulate, Collective, Send, Recv, Wait, LoadInput, StoreOutput>;

/// Which part of a training step an instruction computes; that of all others is Forward. Reported, not run by.
enum class Part : uint8_t {
  Forward,
  Repeated, ///< what forward has computed, again, for gradients that read it
  Gradient,
  Update,
};

struct Instruction {
  Action action;
  std::string node; ///< ONNX node that it computes, for traces and errors
  ByCoord when = 1; ///< 0: skipped there. By micro-batch it tells the first or last one of a step from the others
  /// Serves outputs on request alone (Port::onRequest): skipped in a step in which nobody asks for them. Only of what
  /// stays on the rank: Gemm, Kernel, Copy, and the StoreOutput of such an output.
  bool onRequest = false;
  Part part = Part::Forward;
  int32_t id = -1; ///< while a plan is made: one of its own in the stage, kept where rewrites move it. No file has it
};

enum class ProgramKind : uint8_t {
  Receive, ///< posts the receives of activations
  Forward,
  Drain,           ///< completes the sends of activations
  ReceiveGradient, ///< posts the receives of gradients
  Backward,        ///< what the gradient that goes to another stage needs
  DrainGradient,
  WeightGradient, ///< the rest of backward, which only accumulators read
  Update,         ///< once a step, in micro-batch 0
};

/// A stage lists each (kind, chunk) once. Chunks are the parts of the model that the stage owns.
struct Program {
  ProgramKind kind = ProgramKind::Forward;
  int32_t chunk = 0;
  std::vector<Instruction> instructions;
};

// What a Session buffer starts with.
struct Nothing {}; ///< poison: a program writes it before anything reads it
struct Number {
  double value = 0; ///< in every element
};
struct StoredWeight {
  /// Index into Plan::weights. The buffer has the weight's dtype; or it has 16 bits and the weight is f32, which is
  /// rounded to nearest even when it is loaded (such a buffer is not saved); or it is f32 and the weight has 16 bits.
  int32_t weight = 0;
};

enum class Int8Form : uint8_t {
  Codes,  ///< whole numbers from -127 to 127; the buffer has i8
  Scales, ///< one a line, of f32. The slice is one of the tensor without dim `along`
  Values, ///< code * scale, for what does not take codes: in f32, or rounded to the 16 bits that the buffer has
};
/// A weight of f32 in int8 (runtime/base/Int8.h): along a dim each line has a scale. Lines are those of the whole stored
/// tensor, of whatever part of them a rank holds the codes, so an element is the same number in every layout.
struct Int8Weight {
  int32_t weight = 0; ///< index into Plan::weights
  int32_t along = 0;  ///< a dim of what is stored: the one that products sum over
  Int8Form form = Int8Form::Codes;
};

/// Of each Session buffer: what it starts with and how it is saved.
struct Binding {
  int32_t buffer = 0;
  Slice slice; ///< the part of the global value that each rank holds
  std::variant<Nothing, Number, StoredWeight, Int8Weight> start;
  std::string saved;          ///< key in a checkpoint: a parameter's name, "adam.m/<parameter>"; empty: not saved
  std::vector<int64_t> shape; ///< of the global value in a checkpoint; empty where it is not saved
};

/// The stored tensor that a buffer starts with, in whatever form.
inline std::optional<int32_t> storedTensorOf(const Binding &binding) {
  if (const auto *stored = std::get_if<StoredWeight>(&binding.start))
    return stored->weight;
  if (const auto *int8 = std::get_if<Int8Weight>(&binding.start))
    return int8->weight;
  return std::nullopt;
}

/// One entry of a stage's schedule: run a program for a micro-batch. The slot of a buffer is microBatch % its slots.
struct ScheduleStep {
  int32_t program = 0;
  int32_t microBatch = 0;
};

struct Stage {
  std::vector<Buffer> buffers;
  std::vector<Binding> bindings; ///< one per Session buffer
  std::vector<Program> programs;
  std::vector<ScheduleStep> schedule;                     ///< empty where the plan has entries
  std::vector<int32_t> requests;                          ///< per request: the number of its slots
  int64_t sessionBytes = 0, workBytes = 0, hostBytes = 0; ///< arena sizes; set by `place`
};

struct Axis {
  std::string name;
  int64_t size = 1;
};

/// A file that holds weights, relative to the folder of the plan unless absolute.
struct WeightFile {
  std::string path;
};

/// A tensor that Session buffers start with, row-major: a parameter or a large constant. Its bytes are
/// file[offset .. offset+bytes), or `inlineData` when file is -1.
struct Weight {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  int32_t file = -1;
  int64_t offset = 0, bytes = 0;
  std::vector<uint64_t>
      hashes; ///< XXH3 (64 bits) of every MiB, the last one shorter; none: compiled without the content
  std::string inlineData;
  /// The compiler has seen its type and shape alone.
  bool isAbsent() const { return file >= 0 && bytes > 0 && hashes.empty(); }
  bool isInput = false; ///< the default of an input of the model: a run may give another content
  /// All names that the framework's own state has for it (a tied weight has several); none: `name` alone.
  std::vector<std::string> stateNames = {};
  /// The exporter made it of the one of `stateNames`, as it is or transposed; in the state it goes by no name of its own.
  bool isMade = false;
  /// The exporter made it, of what is no state of the framework: it comes from the model's file alone.
  bool isConstant = false;
};

/// Something that is looked up by the numbers of an input: rows of a table, classes of a loss.
struct Lookup {
  std::vector<int64_t> begin, end; ///< the box of the input whose numbers it takes
  int64_t low = 0, high = 0;       ///< numbers in [low, high) name something
  std::optional<int64_t> ignored;  ///< and this one stands for nothing
  std::string reader;              ///< module path of what looks up, or its ONNX node
};

/// A graph input or output, as the user sees it.
struct Port {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  bool isStepScalar = false; ///< an input of rank 0 that the loop fills before each step: lr, step, seed, ...
  bool onRequest = false;    ///< an output that a step computes and stores only where it is asked for: a gradient
  std::vector<Lookup> lookups = {}; ///< of an input of integers: a run refuses numbers that one of them does not take
  std::string defaultInput = {};    ///< the input, of its type and shape, whose data stand for it where none are given; or ""
  /// The largest value that a run may give; the smallest is 0. Only step scalars of i64 have it, in plans with entries: numbers of instructions (ByCoord) may vary with them.
  std::optional<int64_t> largest = {};
};

/// Machine code for one kind of device.
struct CodeModule {
  std::string target;                ///< "x86-64" (an ELF shared object) or "ptx"
  std::vector<std::string> features; ///< what the code needs: of x86-64, names as in /proc/cpuinfo
  int32_t capability = 0;            ///< of ptx: the least compute capability, 80 for 8.0
  std::string bytes;
  std::vector<std::string> symbols; ///< the functions it defines, each once
};

/// Something of how a training step was compiled, which a checkpoint of it names: "betas" is "0.9,0.95".
struct Setting {
  std::string name, value;
};

/// One of the things that a plan can be run for: "train", "evaluate". Entries share weights, states, arenas, code and, where
/// their schedules say so, programs.
struct Entry {
  std::string name;
  int64_t microBatches = 1;             ///< as Plan::microBatches: of the tables of its programs
  std::vector<int32_t> inputs, outputs; ///< indices into Plan::inputs and outputs, in the order in which a run takes and gives them
  std::vector<std::vector<ScheduleStep>> schedules; ///< by stage
};

struct Plan {
  std::string model;      ///< name for people
  std::vector<Axis> axes; ///< within a stage, e.g. dp, tp; never empty sizes
  int64_t microBatches = 1; ///< 1 where the plan has entries
  std::vector<Port> inputs, outputs;
  std::vector<WeightFile> files;
  std::vector<Weight> weights;
  std::vector<std::string> compiledIn; ///< inputs of the model with defaults that are no weights of their own here
  std::vector<Stage> stages;
  std::vector<CodeModule> modules; ///< those of one target together define each kernel of the plan once; none in a plan to be simulated
  std::vector<Setting> training;   ///< of a training step: loss, optimizer and the like, whose names differ; else none
  /// None: the plan is run for one thing, by the schedules of its stages, with all its ports. Else the first is what a plan is
  /// run for where nobody says what. Each of them is checked and run as the plan that planOf makes of it (Entries.h).
  std::vector<Entry> entries = {};

  int64_t ranksPerStage() const {
    int64_t ranks = 1;
    for (const Axis &axis : axes)
      ranks *= axis.size;
    return ranks;
  }
  int64_t worldSize() const { return ranksPerStage() * int64_t(stages.size()); }
};

} // namespace hpc::plan
