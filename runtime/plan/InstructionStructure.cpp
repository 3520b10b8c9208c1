// Instructions by themselves: references, tables, indices of inputs and outputs, element types. Whether what they touch
// stays inside the buffers is for CheckRanges.cpp.
#include "runtime/plan/CheckedMath.h"
#include "runtime/plan/PlanFault.h"
#include "runtime/plan/PlanNames.h"
#include "runtime/plan/PlanStructure.h"
#include "runtime/plan/Windows.h"

#include <algorithm>
#include <set>

namespace hpc::plan {

namespace {

struct InstructionChecker {
  const Plan &plan;
  const Stage &stage;

  Status inRange(const char *what, int64_t value, int64_t least, int64_t most) const {
    if (value >= least && value <= most)
      return Status::success();
    if (most < least)
      return fault(std::string(what) + " is " + std::to_string(value) + ", but there are none");
    return fault(std::string(what) + " is " + std::to_string(value) + "; it must be in " + std::to_string(least) +
                 ".." + std::to_string(most));
  }

  /// The buffer exists, the offset is inside and a multiple of the element size.
  Status checkRef(const Ref &ref, const char *what, bool mayBeOnHost = false) const {
    HPC_RETURN_IF_ERROR(
        inRange((std::string("buffer of ") + what).c_str(), ref.buffer, 0, int64_t(stage.buffers.size()) - 1));
    const Buffer &buffer = stage.buffers[ref.buffer];
    if (buffer.space == Space::Host && !mayBeOnHost)
      return fault(std::string(what) + " is " + bufferText(stage, ref.buffer) +
                   ", which lies in host memory; only a copy reaches it");
    HPC_RETURN_IF_ERROR(inRange((std::string("byte offset of ") + what).c_str(), ref.byteOffset, 0, buffer.bytes));
    if (ref.byteOffset % byteSize(buffer.dtype) != 0)
      return fault(std::string("byte offset ") + std::to_string(ref.byteOffset) + " of " + what +
                   " is not a multiple of the " + std::to_string(byteSize(buffer.dtype)) + " bytes of an element of " +
                   bufferText(stage, ref.buffer));
    HPC_RETURN_IF_ERROR(inRange((std::string("bytes from micro-batch to micro-batch of ") + what).c_str(), ref.microBatchStride, 0,
                                buffer.lifetime == Lifetime::Session ? buffer.bytes : 0));
    if (ref.microBatchStride % byteSize(buffer.dtype) != 0)
      return fault(std::string(what) + " moves by " + std::to_string(ref.microBatchStride) + " bytes a micro-batch, not a multiple of the " +
                   std::to_string(byteSize(buffer.dtype)) + " bytes of an element of " + bufferText(stage, ref.buffer));
    return Status::success();
  }
  Status checkRef(const Ref &ref, const char *what, DType dtype) const {
    HPC_RETURN_IF_ERROR(checkRef(ref, what));
    if (stage.buffers[ref.buffer].dtype != dtype)
      return fault(std::string(what) + " is " + bufferText(stage, ref.buffer) + " of " +
                   hpc::name(stage.buffers[ref.buffer].dtype) + "; it must be " + hpc::name(dtype));
    return Status::success();
  }

  Status checkOperand(const Gemm &gemm, const Operand &operand, const char *what) const {
    HPC_RETURN_IF_ERROR(checkRef(operand.place, what, operand.dtype));
    HPC_RETURN_IF_ERROR(checkTable(plan, operand.offset, (std::string("offset of ") + what).c_str(), 0, maxBytes));
    HPC_RETURN_IF_ERROR(checkOffset(operand.offset, operand.place, (std::string("offset of ") + what).c_str()));
    HPC_RETURN_IF_ERROR(inRange((std::string("leading dim of ") + what).c_str(), operand.ld, 0, maxBytes));
    if (operand.stride.size() != gemm.batch.size())
      return fault(std::to_string(gemm.batch.size()) + " batch dims, but " + std::to_string(operand.stride.size()) +
                   " strides of " + what);
    for (int64_t stride : operand.stride)
      HPC_RETURN_IF_ERROR(inRange((std::string("batch stride of ") + what).c_str(), stride, 0, maxBytes));
    return Status::success();
  }
  Status operator()(const Gemm &gemm) const {
    HPC_RETURN_IF_ERROR(inRange("number of batch dims", int64_t(gemm.batch.size()), 0, maxDims));
    for (int64_t size : gemm.batch)
      HPC_RETURN_IF_ERROR(inRange("batch dim", size, 0, maxBytes));
    HPC_RETURN_IF_ERROR(checkOperand(gemm, gemm.a, "a"));
    HPC_RETURN_IF_ERROR(checkOperand(gemm, gemm.b, "b"));
    HPC_RETURN_IF_ERROR(checkOperand(gemm, gemm.c, "c"));
    bool isInt8 = gemm.b.dtype == DType::I8 && gemm.a.dtype != DType::F64 && gemm.accumulate == DType::F32;
    for (DType dtype : {gemm.a.dtype, isInt8 ? DType::F32 : gemm.b.dtype, gemm.c.dtype, gemm.accumulate})
      if (!isFloat(dtype))
        return fault(std::string("a product with ") + hpc::name(dtype) +
                     "; operands and sum are floats, but b may be i8 where a has at most 32 bits and sums are f32");
    if (byteSize(gemm.accumulate) < byteSize(gemm.c.dtype))
      return fault(std::string("sums in ") + hpc::name(gemm.accumulate) + " what is stored as " +
                   hpc::name(gemm.c.dtype) + "; sum in a type at least as wide");
    if (gemm.c.transpose || gemm.c.packed || (gemm.a.packed && !gemm.windows))
      return fault("only b may be packed, or a where b is windows, and c is neither packed nor transposed");
    if (!isEverywhere(gemm.c.offset, 0))
      return fault("c has an offset; only a and b are read from one on");
    HPC_RETURN_IF_ERROR(checkTable(plan, gemm.m, "m", 0, maxBytes));
    HPC_RETURN_IF_ERROR(checkTable(plan, gemm.n, "n", 0, maxBytes));
    HPC_RETURN_IF_ERROR(checkTable(plan, gemm.k, "k", 0, maxBytes));
    if (gemm.windows)
      HPC_RETURN_IF_ERROR(checkWindows(plan, gemm));
    return checkTable(plan, gemm.addToC, "add to c", 0, 1);
  }

  Status operator()(const Kernel &kernel) const {
    for (size_t i = 0; i < kernel.args.size(); ++i) {
      const KernelArg &arg = kernel.args[i];
      HPC_RETURN_IF_ERROR(checkRef(arg.place, ("argument " + std::to_string(i)).c_str()));
      HPC_RETURN_IF_ERROR(inRange("bytes of an argument", arg.bytes, 0, maxBytes));
      if (!arg.reads && !arg.writes)
        return fault("argument " + std::to_string(i) + " is neither read nor written");
    }
    for (const ByCoord &scalar : kernel.scalars)
      HPC_RETURN_IF_ERROR(checkVaryingTable(plan, scalar, "scalar", INT64_MIN, INT64_MAX));
    HPC_RETURN_IF_ERROR(checkTable(plan, kernel.launch.blocks, "blocks", 0, INT32_MAX));
    HPC_RETURN_IF_ERROR(checkTable(plan, kernel.launch.threads, "threads", 0, maxThreads));
    HPC_RETURN_IF_ERROR(checkTable(plan, kernel.launch.sharedBytes, "shared bytes", 0, maxSharedBytes));
    if (kernel.attention)
      HPC_RETURN_IF_ERROR(checkAttention(stage, kernel));
    if (kernel.epilogue)
      HPC_RETURN_IF_ERROR(checkEpilogue(stage, kernel));
    HPC_RETURN_IF_ERROR(inRange("flops", kernel.flops, 0, INT64_MAX));
    HPC_RETURN_IF_ERROR(inRange("operations", kernel.operations, 0, INT64_MAX));
    return inRange("rows", kernel.rows, 0, maxBytes);
  }

  /// All multiples of the element size.
  Status checkOffset(const ByCoord &offset, const Ref &from, const char *what) const {
    HPC_RETURN_IF_ERROR(checkVaryingTable(plan, offset, what, 0, maxBytes));
    const Buffer &buffer = stage.buffers[from.buffer];
    std::vector<int64_t> values = offset.values;
    values.push_back(offset.scale);
    for (int64_t value : values)
      if (value % byteSize(buffer.dtype) != 0)
        return fault(std::string(what) + " has " + std::to_string(value) + ", not a multiple of the " +
                     std::to_string(byteSize(buffer.dtype)) + " bytes of an element of " + bufferText(stage, from.buffer));
    return Status::success();
  }
  bool startsWithSomething(int32_t buffer) const {
    return std::any_of(stage.bindings.begin(), stage.bindings.end(), [&](const Binding &binding) {
      return binding.buffer == buffer && !std::holds_alternative<Nothing>(binding.start);
    });
  }

  Status operator()(const Copy &copy) const {
    HPC_RETURN_IF_ERROR(checkRef(copy.src, "src", true));
    HPC_RETURN_IF_ERROR(checkRef(copy.dst, "dst", true));
    HPC_RETURN_IF_ERROR(checkOffset(copy.srcOffset, copy.src, "offset of src"));
    HPC_RETURN_IF_ERROR(checkOffset(copy.dstOffset, copy.dst, "offset of dst"));
    const std::vector<int64_t> &values = copy.dstOffset.values;
    const bool isFixed = !copy.dstOffset.varies() && std::all_of(values.begin(), values.end(), [&](int64_t value) { return value == values[0]; });
    if (!isFixed && !startsWithSomething(copy.dst.buffer))
      return fault("writes to changing parts of " + bufferText(stage, copy.dst.buffer) +
                   ", which holds nothing where no step has written; only what lives for the session, and starts with something, is written in parts");
    return inRange("bytes", copy.bytes, 0, maxBytes);
  }

  Status operator()(const Accumulate &sum) const {
    HPC_RETURN_IF_ERROR(checkRef(sum.src, "src", sum.dtype));
    HPC_RETURN_IF_ERROR(checkRef(sum.dst, "dst", sum.dtype));
    if (sum.dtype == DType::Bool)
      return fault("adds up bool; only numbers have a sum");
    HPC_RETURN_IF_ERROR(checkTable(plan, sum.add, "add", 0, 1));
    return inRange("count", sum.count, 0, maxBytes);
  }

  Status operator()(const Collective &collective) const {
    HPC_RETURN_IF_ERROR(checkRef(collective.src, "src", collective.dtype));
    HPC_RETURN_IF_ERROR(checkRef(collective.dst, "dst", collective.dtype));
    HPC_RETURN_IF_ERROR(inRange("count", collective.count, 0, maxBytes));
    if (collective.axes.empty())
      return fault("a collective over no axis");
    int64_t group = 1;
    std::set<std::string> seen;
    for (const std::string &wanted : collective.axes) {
      const Axis *found = nullptr;
      for (const Axis &axis : plan.axes)
        if (axis.name == wanted)
          found = &axis;
      if (!found)
        return fault("axis '" + wanted + "' is none of the mesh's axes");
      if (!seen.insert(wanted).second)
        return fault("axis '" + wanted + "' is listed twice");
      group *= found->size;
    }
    if (collective.request != -1)
      HPC_RETURN_IF_ERROR(checkRequest(collective.request));
    // A permute's alone says anything, and the executor looks it up for all.
    return checkTable(plan, collective.source, "source", 0, group - 1);
  }

  Status checkRequest(int32_t request) const {
    return inRange("request", request, 0, int64_t(stage.requests.size()) - 1);
  }
  template <typename Transfer> Status checkTransfer(const Transfer &transfer) const {
    HPC_RETURN_IF_ERROR(inRange("bytes", transfer.bytes, 0, maxBytes));
    HPC_RETURN_IF_ERROR(checkTable(plan, transfer.peer, "peer", -1, plan.worldSize() - 1));
    HPC_RETURN_IF_ERROR(inRange("channel", transfer.channel, 0, maxChannel));
    return checkRequest(transfer.request);
  }
  Status operator()(const Send &send) const {
    HPC_RETURN_IF_ERROR(checkRef(send.src, "src"));
    return checkTransfer(send);
  }
  Status operator()(const Recv &recv) const {
    HPC_RETURN_IF_ERROR(checkRef(recv.dst, "dst"));
    return checkTransfer(recv);
  }
  Status operator()(const Wait &wait) const { return checkRequest(wait.request); }

  Status operator()(const LoadInput &load) const {
    HPC_RETURN_IF_ERROR(inRange("input", load.input, 0, int64_t(plan.inputs.size()) - 1));
    const Port &port = plan.inputs[load.input];
    HPC_RETURN_IF_ERROR(checkRef(load.dst, "dst", port.dtype));
    return checkSlice(plan, load.slice, productOf(port.shape), true).at("input '" + port.name + "'");
  }
  Status operator()(const StoreOutput &store) const {
    HPC_RETURN_IF_ERROR(inRange("output", store.output, 0, int64_t(plan.outputs.size()) - 1));
    const Port &port = plan.outputs[store.output];
    HPC_RETURN_IF_ERROR(checkRef(store.src, "src", port.dtype));
    HPC_RETURN_IF_ERROR(checkTable(plan, store.owner, "owner", 0, 1));
    return checkSlice(plan, store.slice, productOf(port.shape), true).at("output '" + port.name + "'");
  }
};

} // namespace

bool isPosted(const Action &action) {
  const auto *collective = std::get_if<Collective>(&action);
  return std::holds_alternative<Send>(action) || std::holds_alternative<Recv>(action) ||
         (collective && collective->request >= 0);
}

/// An instruction that sends is part of every step, so that no rank waits for one that another rank skips.
static Status checkRequested(const Plan &plan, const Instruction &instruction) {
  const auto *store = std::get_if<StoreOutput>(&instruction.action);
  if (store && plan.outputs[size_t(store->output)].onRequest != instruction.onRequest)
    return fault(instruction.onRequest ? "is on request, but its output is of every step"
                                       : "is of every step, but its output is on request");
  bool stays = std::holds_alternative<Gemm>(instruction.action) || std::holds_alternative<Kernel>(instruction.action) ||
               std::holds_alternative<Copy>(instruction.action);
  if (instruction.onRequest && !store && !stays)
    return fault("is on request; only products, kernels, copies and stores are");
  return Status::success();
}

Status checkInstruction(const Plan &plan, const Stage &stage, const Instruction &instruction) {
  InstructionChecker checker{plan, stage};
  HPC_RETURN_IF_ERROR(checkTable(plan, instruction.when, "when", 0, 1));
  HPC_RETURN_IF_ERROR(std::visit(checker, instruction.action));
  return checkRequested(plan, instruction);
}

} // namespace hpc::plan
