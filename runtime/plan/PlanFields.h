// The fields of each struct of Plan.h, described once, in the order of their numbers in plan.proto. The file's writer and
// reader and the price of what is read come from this list; a field that older files lack is `optional`.
#pragma once

#include "runtime/plan/Plan.h"

#include <functional>
#include <tuple>
#include <type_traits>

namespace hpc::plan {

/// A field; `member` of the struct has its value, whose type decides how the file holds it:
///   bool, integers      a varint, left out where it is 0; `isZigzag`: sint64, short for small negative numbers
///   enums               its number, counted from enumOf<T>.first
///   double, text        8 bytes, left out where they are 0; bytes, left out where there are none
///   lists of numbers    packed; of uint64_t: fixed64
///   lists, structs      messages; those of std::optional only where there is one
template <typename Member> struct Field {
  int number;
  const char *name; ///< in plan.proto
  Member member;
  bool isZigzag = false;
  bool isOptional = false; ///< an enum or a struct that a file may lack, which means its default; not written where isAbsent(value)

  constexpr Field zigzag() const { return {number, name, member, true, isOptional}; }
  constexpr Field optional() const { return {number, name, member, isZigzag, true}; }
};
template <typename Member> constexpr Field<Member> field(int number, const char *name, Member member) {
  return {number, name, member};
}

/// One T of the variant `member`: a field of a oneof. Exactly one of them is there.
template <typename T, typename Member> struct Alternative {
  using Type = T;
  int number;
  const char *name;
  Member member;
};
template <typename T, typename Member> constexpr Alternative<T, Member> oneOf(int number, const char *name, Member member) {
  return {number, name, member};
}

/// A number that every file has, and no struct.
struct Constant {
  int number;
  const char *name;
  uint64_t value;
};

/// Where a message holds a list and nothing else.
struct Itself {
  template <typename T> constexpr T &operator()(T &value) const { return value; }
};

/// `what` a number of the enum is, and how many there are; the file counts from `first`, so that no field is no value.
struct EnumFacts {
  const char *what;
  int count;
  int first = 1;
};
template <typename T> inline constexpr EnumFacts enumOf = {};
template <> inline constexpr EnumFacts enumOf<DType> = {"element type", numDTypes};
template <> inline constexpr EnumFacts enumOf<ReduceKind> = {"kind of reduction", int(ReduceKind::Prod) + 1};
template <> inline constexpr EnumFacts enumOf<Lifetime> = {"lifetime", int(Lifetime::Program) + 1};
template <> inline constexpr EnumFacts enumOf<Space> = {"space", int(Space::Host) + 1};
template <> inline constexpr EnumFacts enumOf<AttentionKind> = {"kind of attention", int(AttentionKind::Backward) + 1};
template <> inline constexpr EnumFacts enumOf<EpilogueKind> = {"kind of epilogue", int(EpilogueKind::BiasGeluTanh) + 1, 2};
template <> inline constexpr EnumFacts enumOf<CollectiveKind> = {"kind of collective", int(CollectiveKind::Permute) + 1};
template <> inline constexpr EnumFacts enumOf<Part> = {"part of a step", int(Part::Update) + 1};
template <> inline constexpr EnumFacts enumOf<ProgramKind> = {"kind of program", int(ProgramKind::Update) + 1};
template <> inline constexpr EnumFacts enumOf<Int8Form> = {"form of an int8 weight", int(Int8Form::Values) + 1};

template <typename T> bool isAbsent(const T &) { return false; }
inline bool isAbsent(const ByCoord &offset) { return isEverywhere(offset, 0); }
inline bool isAbsent(const AttentionTensor &tensor) { return tensor.argument < 0; }

template <typename T> inline constexpr std::tuple<> fieldsOf = {};

template <> inline constexpr auto fieldsOf<ByCoord> = std::make_tuple(
    field(1, "values", &ByCoord::values).zigzag(), field(2, "scale", &ByCoord::scale).zigzag(), field(3, "input", &ByCoord::input));

template <> inline constexpr auto fieldsOf<Slice> =
    std::make_tuple(field(1, "view", &Slice::view), field(2, "start", &Slice::start), field(3, "extent", &Slice::extent),
                    field(4, "box", &Slice::box));

template <> inline constexpr auto fieldsOf<Buffer> = std::make_tuple(
    field(1, "name", &Buffer::name), field(2, "dtype", &Buffer::dtype), field(3, "box", &Buffer::box),
    field(4, "lifetime", &Buffer::lifetime), field(5, "space", &Buffer::space), field(6, "bytes", &Buffer::bytes),
    field(7, "offset", &Buffer::offset).zigzag(), field(8, "slots", &Buffer::slots), field(9, "slot_stride", &Buffer::slotStride));

template <> inline constexpr auto fieldsOf<Ref> =
    std::make_tuple(field(1, "buffer", &Ref::buffer).zigzag(), field(2, "byte_offset", &Ref::byteOffset),
                    field(3, "micro_batch_stride", &Ref::microBatchStride));

template <> inline constexpr auto fieldsOf<Reason> =
    std::make_tuple(field(1, "node", &Reason::node), field(2, "path", &Reason::path), field(3, "cause", &Reason::cause),
                    field(4, "avoid", &Reason::avoid));

template <> inline constexpr auto fieldsOf<Windows> = std::make_tuple(
    field(1, "channels", &Windows::channels), field(2, "image", &Windows::image), field(3, "sizes", &Windows::sizes),
    field(4, "counts", &Windows::counts), field(5, "strides", &Windows::strides), field(6, "dilations", &Windows::dilations),
    field(7, "low", &Windows::low));

template <> inline constexpr auto fieldsOf<Operand> = std::make_tuple(
    field(1, "place", &Operand::place), field(2, "dtype", &Operand::dtype), field(3, "ld", &Operand::ld),
    field(4, "transpose", &Operand::transpose), field(5, "stride", &Operand::stride), field(6, "packed", &Operand::packed),
    field(7, "offset", &Operand::offset).optional());

template <> inline constexpr auto fieldsOf<Gemm> = std::make_tuple(
    field(1, "a", &Gemm::a), field(2, "b", &Gemm::b), field(3, "c", &Gemm::c), field(4, "m", &Gemm::m), field(5, "n", &Gemm::n),
    field(6, "k", &Gemm::k), field(7, "accumulate", &Gemm::accumulate), field(8, "add_to_c", &Gemm::addToC),
    Constant{9, "epilogue", 1}, field(11, "batch", &Gemm::batch), field(12, "windows", &Gemm::windows));

template <> inline constexpr auto fieldsOf<KernelArg> =
    std::make_tuple(field(1, "place", &KernelArg::place), field(2, "bytes", &KernelArg::bytes),
                    field(3, "reads", &KernelArg::reads), field(4, "writes", &KernelArg::writes));

template <> inline constexpr auto fieldsOf<Launch> =
    std::make_tuple(field(1, "blocks", &Launch::blocks), field(2, "threads", &Launch::threads),
                    field(3, "shared_bytes", &Launch::sharedBytes));

template <> inline constexpr auto fieldsOf<AttentionTensor> =
    std::make_tuple(field(1, "argument", &AttentionTensor::argument).zigzag(), field(2, "dtype", &AttentionTensor::dtype),
                    field(3, "offset", &AttentionTensor::offset), field(4, "stride", &AttentionTensor::stride));

template <> inline constexpr auto fieldsOf<Attention> = std::make_tuple(
    field(1, "kind", &Attention::kind), field(2, "batch", &Attention::batch), field(3, "heads", &Attention::heads),
    field(4, "groups", &Attention::groups), field(5, "queries", &Attention::queries), field(6, "keys", &Attention::keys),
    field(7, "depth", &Attention::depth), field(8, "width", &Attention::width), field(9, "query", &Attention::query),
    field(10, "key", &Attention::key), field(11, "value", &Attention::value), field(12, "bias", &Attention::bias).optional(),
    field(13, "gradient", &Attention::gradient).optional(), field(14, "results", &Attention::results),
    field(15, "scale", &Attention::scale), field(16, "causal", &Attention::causal),
    field(17, "causal_offset", &Attention::causalOffset), field(18, "guarded", &Attention::guarded));

template <> inline constexpr auto fieldsOf<Epilogue> =
    std::make_tuple(field(1, "kind", &Epilogue::kind), field(2, "product", &Epilogue::product).zigzag(),
                    field(3, "bias", &Epilogue::bias).zigzag());

template <> inline constexpr auto fieldsOf<Kernel> = std::make_tuple(
    field(1, "symbol", &Kernel::symbol), field(2, "args", &Kernel::args), field(3, "scalars", &Kernel::scalars),
    field(4, "rows", &Kernel::rows), field(5, "launch", &Kernel::launch), field(6, "attention", &Kernel::attention),
    field(7, "flops", &Kernel::flops), field(8, "epilogue", &Kernel::epilogue),
    field(9, "operations", &Kernel::operations));

template <> inline constexpr auto fieldsOf<Copy> = std::make_tuple(
    field(1, "src", &Copy::src), field(2, "dst", &Copy::dst), field(3, "bytes", &Copy::bytes),
    field(4, "src_offset", &Copy::srcOffset).optional(), field(5, "dst_offset", &Copy::dstOffset).optional());

template <> inline constexpr auto fieldsOf<Accumulate> =
    std::make_tuple(field(1, "src", &Accumulate::src), field(2, "dst", &Accumulate::dst), field(3, "dtype", &Accumulate::dtype),
                    field(4, "count", &Accumulate::count), field(5, "add", &Accumulate::add));

template <> inline constexpr auto fieldsOf<Collective> = std::make_tuple(
    field(1, "kind", &Collective::kind), field(2, "reduce", &Collective::reduce), field(3, "axes", &Collective::axes),
    field(4, "dtype", &Collective::dtype), field(5, "count", &Collective::count), field(6, "src", &Collective::src),
    field(7, "dst", &Collective::dst), field(8, "source", &Collective::source),
    field(9, "request", &Collective::request).zigzag(), field(10, "reason", &Collective::reason));

template <> inline constexpr auto fieldsOf<Send> =
    std::make_tuple(field(1, "src", &Send::src), field(2, "bytes", &Send::bytes), field(3, "peer", &Send::peer),
                    field(4, "channel", &Send::channel), field(5, "request", &Send::request), field(6, "reason", &Send::reason));

template <> inline constexpr auto fieldsOf<Recv> =
    std::make_tuple(field(1, "dst", &Recv::dst), field(2, "bytes", &Recv::bytes), field(3, "peer", &Recv::peer),
                    field(4, "channel", &Recv::channel), field(5, "request", &Recv::request), field(6, "reason", &Recv::reason));

template <> inline constexpr auto fieldsOf<Wait> = std::make_tuple(field(1, "request", &Wait::request));

template <> inline constexpr auto fieldsOf<LoadInput> =
    std::make_tuple(field(1, "input", &LoadInput::input), field(2, "dst", &LoadInput::dst), field(3, "slice", &LoadInput::slice));

template <> inline constexpr auto fieldsOf<StoreOutput> =
    std::make_tuple(field(1, "output", &StoreOutput::output), field(2, "src", &StoreOutput::src),
                    field(3, "slice", &StoreOutput::slice), field(4, "owner", &StoreOutput::owner));

template <> inline constexpr auto fieldsOf<Instruction> = std::make_tuple(
    oneOf<Gemm>(1, "gemm", &Instruction::action), oneOf<Kernel>(2, "kernel", &Instruction::action),
    oneOf<Copy>(3, "copy", &Instruction::action), oneOf<Collective>(4, "collective", &Instruction::action),
    oneOf<Send>(5, "send", &Instruction::action), oneOf<Recv>(6, "recv", &Instruction::action),
    oneOf<Wait>(7, "wait", &Instruction::action), oneOf<LoadInput>(8, "load_input", &Instruction::action),
    oneOf<StoreOutput>(9, "store_output", &Instruction::action), oneOf<Accumulate>(10, "accumulate", &Instruction::action),
    field(15, "node", &Instruction::node), field(16, "when", &Instruction::when),
    field(18, "on_request", &Instruction::onRequest), field(19, "part", &Instruction::part));

template <> inline constexpr auto fieldsOf<Program> =
    std::make_tuple(field(1, "kind", &Program::kind), field(2, "chunk", &Program::chunk),
                    field(3, "instructions", &Program::instructions));

template <> inline constexpr auto fieldsOf<Number> = std::make_tuple(field(1, "value", &Number::value));
template <> inline constexpr auto fieldsOf<StoredWeight> = std::make_tuple(field(1, "weight", &StoredWeight::weight));
template <> inline constexpr auto fieldsOf<Int8Weight> =
    std::make_tuple(field(1, "weight", &Int8Weight::weight), field(2, "along", &Int8Weight::along),
                    field(3, "form", &Int8Weight::form));

template <> inline constexpr auto fieldsOf<Binding> = std::make_tuple(
    field(1, "buffer", &Binding::buffer), field(2, "slice", &Binding::slice), oneOf<Nothing>(3, "nothing", &Binding::start),
    oneOf<Number>(4, "number", &Binding::start), oneOf<StoredWeight>(5, "stored", &Binding::start),
    field(6, "saved", &Binding::saved), field(7, "shape", &Binding::shape), oneOf<Int8Weight>(8, "int8", &Binding::start));

template <> inline constexpr auto fieldsOf<ScheduleStep> =
    std::make_tuple(field(1, "program", &ScheduleStep::program), field(2, "micro_batch", &ScheduleStep::microBatch));

template <> inline constexpr auto fieldsOf<Stage> = std::make_tuple(
    field(1, "buffers", &Stage::buffers), field(2, "bindings", &Stage::bindings), field(3, "programs", &Stage::programs),
    field(4, "schedule", &Stage::schedule), field(5, "requests", &Stage::requests),
    field(6, "session_bytes", &Stage::sessionBytes), field(7, "work_bytes", &Stage::workBytes),
    field(8, "host_bytes", &Stage::hostBytes));

template <> inline constexpr auto fieldsOf<Axis> = std::make_tuple(field(1, "name", &Axis::name), field(2, "size", &Axis::size));
template <> inline constexpr auto fieldsOf<WeightFile> = std::make_tuple(field(1, "path", &WeightFile::path));

template <> inline constexpr auto fieldsOf<Weight> = std::make_tuple(
    field(1, "name", &Weight::name), field(2, "dtype", &Weight::dtype), field(3, "shape", &Weight::shape),
    field(4, "file", &Weight::file).zigzag(), field(5, "offset", &Weight::offset), field(6, "bytes", &Weight::bytes),
    field(7, "hashes", &Weight::hashes), field(8, "inline_data", &Weight::inlineData), field(9, "is_input", &Weight::isInput),
    field(10, "state_names", &Weight::stateNames), field(11, "is_made", &Weight::isMade),
    field(12, "is_constant", &Weight::isConstant));

template <> inline constexpr auto fieldsOf<Lookup> = std::make_tuple(
    field(1, "begin", &Lookup::begin), field(2, "end", &Lookup::end), field(3, "low", &Lookup::low),
    field(4, "high", &Lookup::high), field(5, "ignored", &Lookup::ignored), field(6, "reader", &Lookup::reader));

template <> inline constexpr auto fieldsOf<Port> = std::make_tuple(
    field(1, "name", &Port::name), field(2, "dtype", &Port::dtype), field(3, "shape", &Port::shape),
    field(4, "is_step_scalar", &Port::isStepScalar), field(5, "on_request", &Port::onRequest),
    field(6, "lookups", &Port::lookups), field(7, "default_input", &Port::defaultInput), field(8, "largest", &Port::largest));

template <> inline constexpr auto fieldsOf<CodeModule> = std::make_tuple(
    field(1, "target", &CodeModule::target), field(2, "features", &CodeModule::features),
    field(3, "capability", &CodeModule::capability), field(4, "bytes", &CodeModule::bytes),
    field(5, "symbols", &CodeModule::symbols));

template <> inline constexpr auto fieldsOf<Setting> =
    std::make_tuple(field(1, "name", &Setting::name), field(2, "value", &Setting::value));

template <> inline constexpr auto fieldsOf<std::vector<ScheduleStep>> = std::make_tuple(field(1, "steps", Itself()));

template <> inline constexpr auto fieldsOf<Entry> = std::make_tuple(
    field(1, "name", &Entry::name), field(2, "micro_batches", &Entry::microBatches), field(3, "inputs", &Entry::inputs),
    field(4, "outputs", &Entry::outputs), field(5, "schedules", &Entry::schedules));

template <> inline constexpr auto fieldsOf<Plan> = std::make_tuple(
    field(1, "model", &Plan::model), field(2, "axes", &Plan::axes), field(3, "micro_batches", &Plan::microBatches),
    field(4, "inputs", &Plan::inputs), field(5, "outputs", &Plan::outputs), field(6, "files", &Plan::files),
    field(7, "weights", &Plan::weights), field(8, "stages", &Plan::stages), field(9, "modules", &Plan::modules),
    field(10, "compiled_in", &Plan::compiledIn), field(11, "training", &Plan::training), field(12, "entries", &Plan::entries));

template <typename T> inline constexpr bool isList = false;
template <typename T> inline constexpr bool isList<std::vector<T>> = true;
template <typename T> inline constexpr bool isNumbers = false;
template <typename T> inline constexpr bool isNumbers<std::vector<T>> = std::is_integral_v<T>;
template <typename T, size_t size> inline constexpr bool isNumbers<std::array<T, size>> = true;
template <typename T> inline constexpr bool isOptional = false;
template <typename T> inline constexpr bool isOptional<std::optional<T>> = true;
template <typename Field> inline constexpr bool isAlternative = false;
template <typename T, typename Member> inline constexpr bool isAlternative<Alternative<T, Member>> = true;

/// Calls function(field) for each field of S, with its index as a second argument.
template <typename S, typename Function> constexpr void forEachField(const Function &function) {
  std::apply([&](const auto &...field) { [[maybe_unused]] size_t index = 0; (function(field, index++), ...); }, fieldsOf<S>);
}

} // namespace hpc::plan
