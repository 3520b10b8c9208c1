// Structs to messages. One `encode` per struct, in the order of Plan.h.
#include "runtime/plan/PlanProto.h"
#include "runtime/plan/plan.pb.h"

namespace hpc::plan {
namespace {

template <typename To, typename From> To shifted(From value) { return To(int(value) + 1); }

/// A struct, so that the templates see all overloads.
struct Encoder {
  template <typename Message, typename Struct> void encodeAll(const std::vector<Struct> &from, Message *to) {
    to->Reserve(int(from.size()));
    for (const Struct &item : from)
      encode(item, *to->Add());
  }

  void encode(const ByCoord &from, proto::ByCoord &to) {
    for (int64_t value : from.values)
      to.add_values(value);
    if (!from.varies())
      return;
    to.set_scale(from.scale);
    to.set_input(from.input);
  }

  void addSizes(const std::vector<int64_t> &from, google::protobuf::RepeatedField<int64_t> *to) {
    for (int64_t value : from)
      to->Add(value);
  }

  void encode(const Slice &from, proto::Slice &to) {
    addSizes(from.view, to.mutable_view());
    encodeAll(from.start, to.mutable_start());
    encodeAll(from.extent, to.mutable_extent());
    addSizes(from.box, to.mutable_box());
  }

  void encode(const Buffer &from, proto::Buffer &to) {
    to.set_name(from.name);
    to.set_dtype(shifted<proto::DType>(from.dtype));
    addSizes(from.box, to.mutable_box());
    to.set_lifetime(shifted<proto::Lifetime>(from.lifetime));
    to.set_space(shifted<proto::Space>(from.space));
    to.set_bytes(from.bytes);
    to.set_offset(from.offset);
    to.set_slots(from.slots);
    to.set_slot_stride(from.slotStride);
  }

  void encode(const Ref &from, proto::Ref &to) {
    to.set_buffer(from.buffer);
    to.set_byte_offset(from.byteOffset);
  }

  void encode(const Reason &from, proto::Reason &to) {
    to.set_node(from.node);
    to.set_path(from.path);
    to.set_cause(from.cause);
    to.set_avoid(from.avoid);
  }

  void encode(const Windows &from, proto::Windows &to) {
    to.set_channels(from.channels);
    addSizes(from.image, to.mutable_image());
    addSizes(from.sizes, to.mutable_sizes());
    addSizes(from.counts, to.mutable_counts());
    addSizes(from.strides, to.mutable_strides());
    addSizes(from.dilations, to.mutable_dilations());
    addSizes(from.low, to.mutable_low());
  }

  void encode(const Operand &from, proto::Operand &to) {
    encode(from.place, *to.mutable_place());
    to.set_dtype(shifted<proto::DType>(from.dtype));
    to.set_ld(from.ld);
    to.set_transpose(from.transpose);
    addSizes(from.stride, to.mutable_stride());
    to.set_packed(from.packed);
  }

  void encode(const Gemm &from, proto::Gemm &to) {
    encode(from.a, *to.mutable_a());
    encode(from.b, *to.mutable_b());
    encode(from.c, *to.mutable_c());
    encode(from.m, *to.mutable_m());
    encode(from.n, *to.mutable_n());
    encode(from.k, *to.mutable_k());
    to.set_accumulate(shifted<proto::DType>(from.accumulate));
    encode(from.addToC, *to.mutable_add_to_c());
    to.set_epilogue(proto::NO_EPILOGUE);
    addSizes(from.batch, to.mutable_batch());
    if (from.windows)
      encode(*from.windows, *to.mutable_windows());
  }

  void encode(const KernelArg &from, proto::KernelArg &to) {
    encode(from.place, *to.mutable_place());
    to.set_bytes(from.bytes);
    to.set_reads(from.reads);
    to.set_writes(from.writes);
  }

  void encode(const Launch &from, proto::Launch &to) {
    encode(from.blocks, *to.mutable_blocks());
    encode(from.threads, *to.mutable_threads());
    encode(from.sharedBytes, *to.mutable_shared_bytes());
  }

  void encode(const AttentionTensor &from, proto::AttentionTensor &to) {
    to.set_argument(from.argument);
    to.set_dtype(shifted<proto::DType>(from.dtype));
    to.set_offset(from.offset);
    for (int64_t stride : from.stride)
      to.add_stride(stride);
  }

  void encode(const Attention &from, proto::Attention &to) {
    to.set_kind(shifted<proto::AttentionKind>(from.kind));
    to.set_batch(from.batch);
    to.set_heads(from.heads);
    to.set_groups(from.groups);
    to.set_queries(from.queries);
    to.set_keys(from.keys);
    to.set_depth(from.depth);
    to.set_width(from.width);
    encode(from.query, *to.mutable_query());
    encode(from.key, *to.mutable_key());
    encode(from.value, *to.mutable_value());
    if (from.bias.argument >= 0)
      encode(from.bias, *to.mutable_bias());
    if (from.gradient.argument >= 0)
      encode(from.gradient, *to.mutable_gradient());
    encodeAll(from.results, to.mutable_results());
    to.set_scale(from.scale);
    to.set_causal(from.causal);
    to.set_causal_offset(from.causalOffset);
    to.set_guarded(from.guarded);
  }

  void encode(const Epilogue &from, proto::Epilogue &to) {
    to.set_kind(proto::EpilogueKind(int(from.kind) + proto::BIAS));
    to.set_product(from.product);
    to.set_bias(from.bias);
  }

  void encode(const Kernel &from, proto::Kernel &to) {
    to.set_symbol(from.symbol);
    encodeAll(from.args, to.mutable_args());
    encodeAll(from.scalars, to.mutable_scalars());
    to.set_rows(from.rows);
    encode(from.launch, *to.mutable_launch());
    if (from.attention)
      encode(*from.attention, *to.mutable_attention());
    to.set_flops(from.flops);
    if (from.epilogue)
      encode(*from.epilogue, *to.mutable_epilogue());
  }

  void encode(const Copy &from, proto::Copy &to) {
    if (!isEverywhere(from.srcOffset, 0))
      encode(from.srcOffset, *to.mutable_src_offset());
    if (!isEverywhere(from.dstOffset, 0))
      encode(from.dstOffset, *to.mutable_dst_offset());
    encode(from.src, *to.mutable_src());
    encode(from.dst, *to.mutable_dst());
    to.set_bytes(from.bytes);
  }

  void encode(const Accumulate &from, proto::Accumulate &to) {
    encode(from.src, *to.mutable_src());
    encode(from.dst, *to.mutable_dst());
    to.set_dtype(shifted<proto::DType>(from.dtype));
    to.set_count(from.count);
    encode(from.add, *to.mutable_add());
  }

  void encode(const Collective &from, proto::Collective &to) {
    to.set_kind(shifted<proto::CollectiveKind>(from.kind));
    to.set_reduce(shifted<proto::ReduceKind>(from.reduce));
    for (const std::string &axis : from.axes)
      to.add_axes(axis);
    to.set_dtype(shifted<proto::DType>(from.dtype));
    to.set_count(from.count);
    encode(from.src, *to.mutable_src());
    encode(from.dst, *to.mutable_dst());
    encode(from.source, *to.mutable_source());
    to.set_request(from.request);
    encode(from.reason, *to.mutable_reason());
  }

  template <typename Transfer, typename Message> void encodeTransfer(const Transfer &from, Message &to) {
    to.set_bytes(from.bytes);
    encode(from.peer, *to.mutable_peer());
    to.set_channel(from.channel);
    to.set_request(from.request);
    encode(from.reason, *to.mutable_reason());
  }

  void encode(const LoadInput &from, proto::LoadInput &to) {
    to.set_input(from.input);
    encode(from.dst, *to.mutable_dst());
    encode(from.slice, *to.mutable_slice());
  }

  void encode(const StoreOutput &from, proto::StoreOutput &to) {
    to.set_output(from.output);
    encode(from.src, *to.mutable_src());
    encode(from.slice, *to.mutable_slice());
    encode(from.owner, *to.mutable_owner());
  }

  /// Picks the field of the oneof by the struct's type.
  struct EncodeAction {
    Encoder &encoder;
    proto::Instruction &to;
    void operator()(const Gemm &from) { encoder.encode(from, *to.mutable_gemm()); }
    void operator()(const Kernel &from) { encoder.encode(from, *to.mutable_kernel()); }
    void operator()(const Copy &from) { encoder.encode(from, *to.mutable_copy()); }
    void operator()(const Accumulate &from) { encoder.encode(from, *to.mutable_accumulate()); }
    void operator()(const Collective &from) { encoder.encode(from, *to.mutable_collective()); }
    void operator()(const Send &from) {
      encoder.encode(from.src, *to.mutable_send()->mutable_src());
      encoder.encodeTransfer(from, *to.mutable_send());
    }
    void operator()(const Recv &from) {
      encoder.encode(from.dst, *to.mutable_recv()->mutable_dst());
      encoder.encodeTransfer(from, *to.mutable_recv());
    }
    void operator()(const Wait &from) { to.mutable_wait()->set_request(from.request); }
    void operator()(const LoadInput &from) { encoder.encode(from, *to.mutable_load_input()); }
    void operator()(const StoreOutput &from) { encoder.encode(from, *to.mutable_store_output()); }
  };

  void encode(const Instruction &from, proto::Instruction &to) {
    std::visit(EncodeAction{*this, to}, from.action);
    to.set_node(from.node);
    encode(from.when, *to.mutable_when());
    to.set_on_request(from.onRequest);
    to.set_part(shifted<proto::Part>(from.part));
  }

  void encode(const Program &from, proto::Program &to) {
    to.set_kind(shifted<proto::ProgramKind>(from.kind));
    to.set_chunk(from.chunk);
    encodeAll(from.instructions, to.mutable_instructions());
  }

  /// Picks the field of the oneof by what the buffer starts with.
  struct EncodeStart {
    proto::Binding &to;
    void operator()(const Nothing &) { to.mutable_nothing(); }
    void operator()(const Number &from) { to.mutable_number()->set_value(from.value); }
    void operator()(const StoredWeight &from) { to.mutable_stored()->set_weight(from.weight); }
    void operator()(const Int8Weight &from) {
      proto::Int8Weight &int8 = *to.mutable_int8();
      int8.set_weight(from.weight);
      int8.set_along(from.along);
      int8.set_form(shifted<proto::Int8Form>(from.form));
    }
  };

  void encode(const Binding &from, proto::Binding &to) {
    to.set_buffer(from.buffer);
    encode(from.slice, *to.mutable_slice());
    std::visit(EncodeStart{to}, from.start);
    to.set_saved(from.saved);
    addSizes(from.shape, to.mutable_shape());
  }

  void encode(const ScheduleStep &from, proto::ScheduleStep &to) {
    to.set_program(from.program);
    to.set_micro_batch(from.microBatch);
  }

  void encode(const Stage &from, proto::Stage &to) {
    encodeAll(from.buffers, to.mutable_buffers());
    encodeAll(from.bindings, to.mutable_bindings());
    encodeAll(from.programs, to.mutable_programs());
    encodeAll(from.schedule, to.mutable_schedule());
    for (int32_t slots : from.requests)
      to.add_requests(slots);
    to.set_session_bytes(from.sessionBytes);
    to.set_work_bytes(from.workBytes);
    to.set_host_bytes(from.hostBytes);
  }

  void encode(const Axis &from, proto::Axis &to) {
    to.set_name(from.name);
    to.set_size(from.size);
  }

  void encode(const WeightFile &from, proto::WeightFile &to) { to.set_path(from.path); }

  void encode(const Weight &from, proto::Weight &to) {
    to.set_name(from.name);
    to.set_dtype(shifted<proto::DType>(from.dtype));
    addSizes(from.shape, to.mutable_shape());
    to.set_file(from.file);
    to.set_offset(from.offset);
    to.set_bytes(from.bytes);
    for (uint64_t hash : from.hashes)
      to.add_hashes(hash);
    to.set_inline_data(from.inlineData);
    to.set_is_input(from.isInput);
    for (const std::string &name : from.stateNames)
      to.add_state_names(name);
    to.set_is_made(from.isMade);
    to.set_is_constant(from.isConstant);
  }

  void encode(const Lookup &from, proto::Lookup &to) {
    addSizes(from.begin, to.mutable_begin());
    addSizes(from.end, to.mutable_end());
    to.set_low(from.low);
    to.set_high(from.high);
    if (from.ignored)
      to.set_ignored(*from.ignored);
    to.set_reader(from.reader);
  }

  void encode(const Port &from, proto::Port &to) {
    to.set_name(from.name);
    to.set_dtype(shifted<proto::DType>(from.dtype));
    addSizes(from.shape, to.mutable_shape());
    to.set_is_step_scalar(from.isStepScalar);
    to.set_on_request(from.onRequest);
    encodeAll(from.lookups, to.mutable_lookups());
    to.set_default_input(from.defaultInput);
    if (from.largest)
      to.set_largest(*from.largest);
  }

  void encode(const CodeModule &from, proto::CodeModule &to) {
    to.set_target(from.target);
    for (const std::string &feature : from.features)
      to.add_features(feature);
    to.set_capability(from.capability);
    to.set_bytes(from.bytes);
    for (const std::string &symbol : from.symbols)
      to.add_symbols(symbol);
  }

  void encode(const Setting &from, proto::Setting &to) {
    to.set_name(from.name);
    to.set_value(from.value);
  }

  void encode(const Entry &from, proto::Entry &to) {
    to.set_name(from.name);
    to.set_micro_batches(from.microBatches);
    for (int32_t input : from.inputs)
      to.add_inputs(input);
    for (int32_t output : from.outputs)
      to.add_outputs(output);
    for (const std::vector<ScheduleStep> &schedule : from.schedules)
      encodeAll(schedule, to.add_schedules()->mutable_steps());
  }

  void encode(const Plan &from, proto::Plan &to) {
    to.set_model(from.model);
    encodeAll(from.axes, to.mutable_axes());
    to.set_micro_batches(from.microBatches);
    encodeAll(from.inputs, to.mutable_inputs());
    encodeAll(from.outputs, to.mutable_outputs());
    encodeAll(from.files, to.mutable_files());
    encodeAll(from.weights, to.mutable_weights());
    encodeAll(from.stages, to.mutable_stages());
    encodeAll(from.modules, to.mutable_modules());
    for (const std::string &name : from.compiledIn)
      to.add_compiled_in(name);
    encodeAll(from.training, to.mutable_training());
    encodeAll(from.entries, to.mutable_entries());
  }
};

} // namespace

void encode(const Plan &plan, proto::Plan &message) { Encoder().encode(plan, message); }

} // namespace hpc::plan
