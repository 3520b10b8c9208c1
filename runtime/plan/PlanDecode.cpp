// Messages to structs. One `decode` per struct, in the order of Plan.h; the first thing that a struct cannot say is
// kept in `Decoder::error` and ends the decoding.
#include "runtime/plan/PlanProto.h"
#include "runtime/plan/plan.pb.h"

namespace hpc::plan {
namespace {

struct Decoder {
  std::string error;

  /// Enums are stored shifted by one, so that a missing field is not a valid value.
  template <typename T> void decodeEnum(int from, int numValues, const char *what, T &to) {
    if (from < 1 || from > numValues) {
      if (error.empty())
        error =
            std::string("unknown ") + what + " " + std::to_string(from) + "; the file is corrupt or of a newer version";
      return;
    }
    to = T(from - 1);
  }
  void decode(int from, DType &to) { decodeEnum(from, numDTypes, "element type", to); }
  void decode(int from, Lifetime &to) { decodeEnum(from, int(Lifetime::Program) + 1, "lifetime", to); }
  void decode(int from, Space &to) { decodeEnum(from, int(Space::Host) + 1, "space", to); }
  void decode(int from, EpilogueKind &to) {
    decodeEnum(from - int(proto::NO_EPILOGUE), int(EpilogueKind::BiasGeluTanh) + 1, "kind of epilogue", to);
  }
  void decode(int from, ProgramKind &to) { decodeEnum(from, int(ProgramKind::Update) + 1, "kind of program", to); }
  void decode(int from, CollectiveKind &to) {
    decodeEnum(from, int(CollectiveKind::Permute) + 1, "kind of collective", to);
  }
  void decode(int from, Part &to) {
    if (from != 0) // what plans before 2.5 leave out
      decodeEnum(from, int(Part::Update) + 1, "part of a step", to);
  }
  void decode(int from, AttentionKind &to) { decodeEnum(from, int(AttentionKind::Backward) + 1, "kind of attention", to); }
  void decode(int from, Int8Form &to) { decodeEnum(from, int(Int8Form::Values) + 1, "form of an int8 weight", to); }
  void decode(int from, ReduceKind &to) { decodeEnum(from, int(ReduceKind::Prod) + 1, "kind of reduction", to); }

  template <typename Messages, typename Struct> void decodeAll(const Messages &from, std::vector<Struct> &to) {
    to.reserve(from.size());
    for (const auto &message : from) {
      if (!error.empty())
        return;
      to.emplace_back();
      decode(message, to.back());
    }
  }
  template <typename Fields, typename T> void copyAll(const Fields &from, std::vector<T> &to) {
    to.assign(from.begin(), from.end());
  }

  void decode(const proto::ByCoord &from, ByCoord &to) {
    copyAll(from.values(), to.values);
    to.scale = from.scale();
    to.input = from.scale() == 0 ? -1 : from.input();
  }

  void decode(const proto::Slice &from, Slice &to) {
    copyAll(from.view(), to.view);
    decodeAll(from.start(), to.start);
    decodeAll(from.extent(), to.extent);
    copyAll(from.box(), to.box);
  }

  void decode(const proto::Buffer &from, Buffer &to) {
    to.name = from.name();
    decode(from.dtype(), to.dtype);
    copyAll(from.box(), to.box);
    decode(from.lifetime(), to.lifetime);
    decode(from.space(), to.space);
    to.bytes = from.bytes();
    to.offset = from.offset();
    to.slots = from.slots();
    to.slotStride = from.slot_stride();
  }

  void decode(const proto::Ref &from, Ref &to) {
    to.buffer = from.buffer();
    to.byteOffset = from.byte_offset();
  }

  void decode(const proto::Reason &from, Reason &to) {
    to.node = from.node();
    to.path = from.path();
    to.cause = from.cause();
    to.avoid = from.avoid();
  }

  void decode(const proto::Windows &from, Windows &to) {
    to.channels = from.channels();
    copyAll(from.image(), to.image);
    copyAll(from.sizes(), to.sizes);
    copyAll(from.counts(), to.counts);
    copyAll(from.strides(), to.strides);
    copyAll(from.dilations(), to.dilations);
    copyAll(from.low(), to.low);
  }

  void decode(const proto::Operand &from, Operand &to) {
    decode(from.place(), to.place);
    decode(from.dtype(), to.dtype);
    to.ld = from.ld();
    to.transpose = from.transpose();
    copyAll(from.stride(), to.stride);
    to.packed = from.packed();
  }

  void decode(const proto::Gemm &from, Gemm &to) {
    decode(from.a(), to.a);
    decode(from.b(), to.b);
    decode(from.c(), to.c);
    decode(from.m(), to.m);
    decode(from.n(), to.n);
    decode(from.k(), to.k);
    decode(from.accumulate(), to.accumulate);
    decode(from.add_to_c(), to.addToC);
    if (from.epilogue() > proto::NO_EPILOGUE && error.empty())
      error = "a product with an epilogue of its own, as no plan since 2.7 has; compile the model again";
    copyAll(from.batch(), to.batch);
    if (from.has_windows())
      decode(from.windows(), to.windows.emplace());
  }

  void decode(const proto::KernelArg &from, KernelArg &to) {
    decode(from.place(), to.place);
    to.bytes = from.bytes();
    to.reads = from.reads();
    to.writes = from.writes();
  }

  void decode(const proto::Launch &from, Launch &to) {
    decode(from.blocks(), to.blocks);
    decode(from.threads(), to.threads);
    decode(from.shared_bytes(), to.sharedBytes);
  }

  void decode(const proto::AttentionTensor &from, AttentionTensor &to) {
    to.argument = from.argument();
    decode(from.dtype(), to.dtype);
    to.offset = from.offset();
    if (from.stride_size() != int(to.stride.size()))
      error = error.empty() ? "an attention's tensor has " + std::to_string(from.stride_size()) + " strides, not 4" : error;
    else
      std::copy(from.stride().begin(), from.stride().end(), to.stride.begin());
  }

  void decode(const proto::Attention &from, Attention &to) {
    decode(from.kind(), to.kind);
    to.batch = from.batch();
    to.heads = from.heads();
    to.groups = from.groups();
    to.queries = from.queries();
    to.keys = from.keys();
    to.depth = from.depth();
    to.width = from.width();
    decode(from.query(), to.query);
    decode(from.key(), to.key);
    decode(from.value(), to.value);
    if (from.has_bias())
      decode(from.bias(), to.bias);
    if (from.has_gradient())
      decode(from.gradient(), to.gradient);
    decodeAll(from.results(), to.results);
    to.scale = from.scale();
    to.causal = from.causal();
    to.causalOffset = from.causal_offset();
    to.guarded = from.guarded();
  }

  void decode(const proto::Epilogue &from, Epilogue &to) {
    decode(from.kind(), to.kind);
    to.product = from.product();
    to.bias = from.bias();
  }

  void decode(const proto::Kernel &from, Kernel &to) {
    to.symbol = from.symbol();
    decodeAll(from.args(), to.args);
    decodeAll(from.scalars(), to.scalars);
    to.rows = from.rows();
    decode(from.launch(), to.launch);
    if (from.has_attention())
      decode(from.attention(), to.attention.emplace());
    to.flops = from.flops();
    if (from.has_epilogue())
      decode(from.epilogue(), to.epilogue.emplace());
  }

  void decode(const proto::Copy &from, Copy &to) {
    if (from.has_src_offset())
      decode(from.src_offset(), to.srcOffset);
    if (from.has_dst_offset())
      decode(from.dst_offset(), to.dstOffset);
    decode(from.src(), to.src);
    decode(from.dst(), to.dst);
    to.bytes = from.bytes();
  }

  void decode(const proto::Accumulate &from, Accumulate &to) {
    decode(from.src(), to.src);
    decode(from.dst(), to.dst);
    decode(from.dtype(), to.dtype);
    to.count = from.count();
    decode(from.add(), to.add);
  }

  void decode(const proto::Collective &from, Collective &to) {
    decode(from.kind(), to.kind);
    decode(from.reduce(), to.reduce);
    copyAll(from.axes(), to.axes);
    decode(from.dtype(), to.dtype);
    to.count = from.count();
    decode(from.src(), to.src);
    decode(from.dst(), to.dst);
    decode(from.source(), to.source);
    to.request = from.request();
    decode(from.reason(), to.reason);
  }

  template <typename Message, typename Transfer> void decodeTransfer(const Message &from, Transfer &to) {
    to.bytes = from.bytes();
    decode(from.peer(), to.peer);
    to.channel = from.channel();
    to.request = from.request();
    decode(from.reason(), to.reason);
  }
  void decode(const proto::Send &from, Send &to) {
    decode(from.src(), to.src);
    decodeTransfer(from, to);
  }
  void decode(const proto::Recv &from, Recv &to) {
    decode(from.dst(), to.dst);
    decodeTransfer(from, to);
  }
  void decode(const proto::Wait &from, Wait &to) { to.request = from.request(); }

  void decode(const proto::LoadInput &from, LoadInput &to) {
    to.input = from.input();
    decode(from.dst(), to.dst);
    decode(from.slice(), to.slice);
  }

  void decode(const proto::StoreOutput &from, StoreOutput &to) {
    to.output = from.output();
    decode(from.src(), to.src);
    decode(from.slice(), to.slice);
    decode(from.owner(), to.owner);
  }

  template <typename Struct, typename Message> void decodeAction(const Message &from, Action &to) {
    decode(from, to.emplace<Struct>());
  }

  void decode(const proto::Instruction &from, Instruction &to) {
    to.node = from.node();
    decode(from.when(), to.when);
    to.onRequest = from.on_request();
    decode(int(from.part()), to.part);
    switch (from.action_case()) {
    case proto::Instruction::kGemm:
      return decodeAction<Gemm>(from.gemm(), to.action);
    case proto::Instruction::kKernel:
      return decodeAction<Kernel>(from.kernel(), to.action);
    case proto::Instruction::kCopy:
      return decodeAction<Copy>(from.copy(), to.action);
    case proto::Instruction::kAccumulate:
      return decodeAction<Accumulate>(from.accumulate(), to.action);
    case proto::Instruction::kCollective:
      return decodeAction<Collective>(from.collective(), to.action);
    case proto::Instruction::kSend:
      return decodeAction<Send>(from.send(), to.action);
    case proto::Instruction::kRecv:
      return decodeAction<Recv>(from.recv(), to.action);
    case proto::Instruction::kWait:
      return decodeAction<Wait>(from.wait(), to.action);
    case proto::Instruction::kLoadInput:
      return decodeAction<LoadInput>(from.load_input(), to.action);
    case proto::Instruction::kStoreOutput:
      return decodeAction<StoreOutput>(from.store_output(), to.action);
    case proto::Instruction::ACTION_NOT_SET:
      break;
    }
    if (error.empty())
      error = "an instruction of a kind that this reader does not know (node '" + from.node() +
              "'); the file is corrupt or of a newer version";
  }

  void decode(const proto::Program &from, Program &to) {
    decode(from.kind(), to.kind);
    to.chunk = from.chunk();
    decodeAll(from.instructions(), to.instructions);
  }

  void decode(const proto::Binding &from, Binding &to) {
    to.buffer = from.buffer();
    decode(from.slice(), to.slice);
    to.saved = from.saved();
    copyAll(from.shape(), to.shape);
    switch (from.start_case()) {
    case proto::Binding::kNothing:
      to.start = Nothing{};
      return;
    case proto::Binding::kNumber:
      to.start = Number{from.number().value()};
      return;
    case proto::Binding::kStored:
      to.start = StoredWeight{from.stored().weight()};
      return;
    case proto::Binding::kInt8: {
      Int8Weight int8{from.int8().weight(), from.int8().along(), {}};
      decode(from.int8().form(), int8.form);
      to.start = int8;
      return;
    }
    case proto::Binding::START_NOT_SET:
      break;
    }
    if (error.empty())
      error = "a binding that does not say what its buffer starts with; the file is corrupt or of a newer version";
  }

  void decode(const proto::ScheduleStep &from, ScheduleStep &to) {
    to.program = from.program();
    to.microBatch = from.micro_batch();
  }

  void decode(const proto::Stage &from, Stage &to) {
    decodeAll(from.buffers(), to.buffers);
    decodeAll(from.bindings(), to.bindings);
    decodeAll(from.programs(), to.programs);
    decodeAll(from.schedule(), to.schedule);
    copyAll(from.requests(), to.requests);
    to.sessionBytes = from.session_bytes();
    to.workBytes = from.work_bytes();
    to.hostBytes = from.host_bytes();
  }

  void decode(const proto::Axis &from, Axis &to) {
    to.name = from.name();
    to.size = from.size();
  }

  void decode(const proto::WeightFile &from, WeightFile &to) { to.path = from.path(); }

  void decode(const proto::Weight &from, Weight &to) {
    to.name = from.name();
    decode(from.dtype(), to.dtype);
    copyAll(from.shape(), to.shape);
    to.file = from.file();
    to.offset = from.offset();
    to.bytes = from.bytes();
    copyAll(from.hashes(), to.hashes);
    to.isInput = from.is_input();
    copyAll(from.state_names(), to.stateNames);
    to.isMade = from.is_made();
    to.isConstant = from.is_constant();
  }

  void decode(const proto::Lookup &from, Lookup &to) {
    copyAll(from.begin(), to.begin);
    copyAll(from.end(), to.end);
    to.low = from.low();
    to.high = from.high();
    if (from.has_ignored())
      to.ignored = from.ignored();
    to.reader = from.reader();
  }

  void decode(const proto::Port &from, Port &to) {
    to.name = from.name();
    decode(from.dtype(), to.dtype);
    copyAll(from.shape(), to.shape);
    to.isStepScalar = from.is_step_scalar();
    to.onRequest = from.on_request();
    decodeAll(from.lookups(), to.lookups);
    to.defaultInput = from.default_input();
    if (from.has_largest())
      to.largest = from.largest();
  }

  void decode(const proto::CodeModule &from, CodeModule &to) {
    to.target = from.target();
    copyAll(from.features(), to.features);
    to.capability = from.capability();
    copyAll(from.symbols(), to.symbols);
  }

  void decode(const proto::Setting &from, Setting &to) {
    to.name = from.name();
    to.value = from.value();
  }

  void decode(const proto::Schedule &from, std::vector<ScheduleStep> &to) { decodeAll(from.steps(), to); }

  void decode(const proto::Entry &from, Entry &to) {
    to.name = from.name();
    to.microBatches = from.micro_batches();
    copyAll(from.inputs(), to.inputs);
    copyAll(from.outputs(), to.outputs);
    decodeAll(from.schedules(), to.schedules);
  }

  void decode(proto::Plan &from, Plan &to) {
    to.model = from.model();
    decodeAll(from.axes(), to.axes);
    to.microBatches = from.micro_batches();
    decodeAll(from.inputs(), to.inputs);
    decodeAll(from.outputs(), to.outputs);
    decodeAll(from.files(), to.files);
    decodeAll(from.weights(), to.weights);
    decodeAll(from.stages(), to.stages);
    decodeAll(from.modules(), to.modules);
    copyAll(from.compiled_in(), to.compiledIn);
    decodeAll(from.training(), to.training);
    decodeAll(from.entries(), to.entries);
    // Fields that may be large are not copied.
    for (size_t i = 0; i < to.weights.size(); ++i)
      to.weights[i].inlineData = std::move(*from.mutable_weights(int(i))->mutable_inline_data());
    for (size_t i = 0; i < to.modules.size(); ++i)
      to.modules[i].bytes = std::move(*from.mutable_modules(int(i))->mutable_bytes());
  }
};

} // namespace

Expected<Plan> decode(proto::Plan &message) {
  Decoder decoder;
  Plan plan;
  decoder.decode(message, plan);
  if (!decoder.error.empty())
    return Status::error(ErrorKind::Plan, decoder.error);
  return plan;
}

} // namespace hpc::plan
