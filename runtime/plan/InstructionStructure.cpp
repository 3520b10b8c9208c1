// Instructions by themselves: references, tables, indices of inputs and outputs, element types. Whether what they touch
// stays inside the buffers is for CheckRanges.cpp.
#include "runtime/plan/CheckedMath.h"
#include "runtime/plan/PlanNames.h"
#include "runtime/plan/PlanStructure.h"

#include <set>

namespace hpc::plan {

namespace {

Status fault(const std::string &message) { return Status::error(ErrorKind::Plan, message); }

struct Checker {
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
  Status checkRef(const Ref &ref, const char *what) const {
    HPC_RETURN_IF_ERROR(
        inRange((std::string("buffer of ") + what).c_str(), ref.buffer, 0, int64_t(stage.buffers.size()) - 1));
    const Buffer &buffer = stage.buffers[ref.buffer];
    HPC_RETURN_IF_ERROR(inRange((std::string("byte offset of ") + what).c_str(), ref.byteOffset, 0, buffer.bytes));
    if (ref.byteOffset % byteSize(buffer.dtype) != 0)
      return fault(std::string("byte offset ") + std::to_string(ref.byteOffset) + " of " + what +
                   " is not a multiple of the " + std::to_string(byteSize(buffer.dtype)) + " bytes of an element of " +
                   bufferText(stage, ref.buffer));
    return Status::success();
  }
  Status checkRef(const Ref &ref, const char *what, DType dtype) const {
    HPC_RETURN_IF_ERROR(checkRef(ref, what));
    if (stage.buffers[ref.buffer].dtype != dtype)
      return fault(std::string(what) + " is " + bufferText(stage, ref.buffer) + " of " +
                   hpc::name(stage.buffers[ref.buffer].dtype) + "; it must be " + hpc::name(dtype));
    return Status::success();
  }

  Status operator()(const Gemm &gemm) const {
    HPC_RETURN_IF_ERROR(checkRef(gemm.a, "a", DType::F32));
    HPC_RETURN_IF_ERROR(checkRef(gemm.b, "b", DType::F32));
    HPC_RETURN_IF_ERROR(checkRef(gemm.c, "c", DType::F32));
    HPC_RETURN_IF_ERROR(checkTable(plan, gemm.m, "m", 0, maxBytes));
    HPC_RETURN_IF_ERROR(checkTable(plan, gemm.n, "n", 0, maxBytes));
    HPC_RETURN_IF_ERROR(checkTable(plan, gemm.k, "k", 0, maxBytes));
    for (int64_t leading : {gemm.lda, gemm.ldb, gemm.ldc})
      HPC_RETURN_IF_ERROR(inRange("leading dim", leading, 0, maxBytes));
    size_t dims = gemm.batch.size();
    if (dims > size_t(maxDims) || gemm.strideA.size() != dims || gemm.strideB.size() != dims ||
        gemm.strideC.size() != dims)
      return fault(std::to_string(dims) + " batch dims, but " + std::to_string(gemm.strideA.size()) + ", " +
                   std::to_string(gemm.strideB.size()) + " and " + std::to_string(gemm.strideC.size()) +
                   " strides of a, b and c");
    for (size_t i = 0; i < dims; ++i) {
      HPC_RETURN_IF_ERROR(inRange("batch dim", gemm.batch[i], 0, maxBytes));
      for (int64_t stride : {gemm.strideA[i], gemm.strideB[i], gemm.strideC[i]})
        HPC_RETURN_IF_ERROR(inRange("batch stride", stride, 0, maxBytes));
    }
    return Status::success();
  }

  Status operator()(const Kernel &kernel) const {
    size_t args = kernel.args.size();
    if (kernel.writes.size() != args || kernel.argBytes.size() != args)
      return fault(std::to_string(args) + " arguments, but " + std::to_string(kernel.writes.size()) +
                   " marks of writing and " + std::to_string(kernel.argBytes.size()) + " sizes");
    for (size_t i = 0; i < args; ++i) {
      HPC_RETURN_IF_ERROR(checkRef(kernel.args[i], ("argument " + std::to_string(i)).c_str()));
      HPC_RETURN_IF_ERROR(inRange("bytes of an argument", kernel.argBytes[i], 0, maxBytes));
    }
    for (const ByCoord &scalar : kernel.scalars)
      HPC_RETURN_IF_ERROR(checkTable(plan, scalar, "scalar", INT64_MIN, INT64_MAX));
    return inRange("rows", kernel.rows, 0, maxBytes);
  }

  Status operator()(const Copy &copy) const {
    HPC_RETURN_IF_ERROR(checkRef(copy.src, "src"));
    HPC_RETURN_IF_ERROR(checkRef(copy.dst, "dst"));
    return inRange("bytes", copy.bytes, 0, maxBytes);
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
    if (collective.kind != CollectiveKind::Permute)
      return Status::success();
    return checkTable(plan, collective.source, "source", 0, group - 1);
  }

  template <typename Transfer> Status checkTransfer(const Transfer &transfer) const {
    HPC_RETURN_IF_ERROR(inRange("bytes", transfer.bytes, 0, maxBytes));
    HPC_RETURN_IF_ERROR(checkTable(plan, transfer.peer, "peer", -1, plan.worldSize() - 1));
    HPC_RETURN_IF_ERROR(inRange("channel", transfer.channel, 0, maxChannel));
    return inRange("request", transfer.request, 0, int64_t(stage.requests) - 1);
  }
  Status operator()(const Send &send) const {
    HPC_RETURN_IF_ERROR(checkRef(send.src, "src"));
    return checkTransfer(send);
  }
  Status operator()(const Recv &recv) const {
    HPC_RETURN_IF_ERROR(checkRef(recv.dst, "dst"));
    return checkTransfer(recv);
  }
  Status operator()(const Wait &wait) const { return inRange("request", wait.request, 0, int64_t(stage.requests) - 1); }

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

Status checkInstruction(const Plan &plan, const Stage &stage, const Instruction &instruction) {
  return std::visit(Checker{plan, stage}, instruction.action);
}

} // namespace hpc::plan
