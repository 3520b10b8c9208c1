// That an attention's tensors lie inside the kernel's arguments: a library that is given them touches no other byte.
#include "runtime/plan/CheckedMath.h"
#include "runtime/plan/PlanNames.h"
#include "runtime/plan/PlanStructure.h"

namespace hpc::plan {

namespace {

struct Checker {
  const Stage &stage;
  const Kernel &kernel;
  const Attention &attention;

  Status fault(const std::string &message) const {
    return Status::error(ErrorKind::Plan, std::string(name(attention.kind)) + ": " + message);
  }

  Status checkTensor(const AttentionTensor &tensor, const std::string &what, const std::array<int64_t, 4> &sizes,
                     bool isWritten) const {
    if (tensor.argument < 0 || tensor.argument >= int64_t(kernel.args.size()))
      return fault(what + " is argument " + std::to_string(tensor.argument) + " of " +
                   std::to_string(kernel.args.size()));
    const KernelArg &argument = kernel.args[size_t(tensor.argument)];
    if (isWritten ? !argument.writes : !argument.reads)
      return fault(what + " is argument " + std::to_string(tensor.argument) + ", which the kernel does not " +
                   (isWritten ? "write" : "read"));
    const DType held = stage.buffers[size_t(argument.place.buffer)].dtype;
    if (held != tensor.dtype || !isFloat(tensor.dtype))
      return fault(what + " is " + hpc::name(tensor.dtype) + " in a buffer of " + hpc::name(held) +
                   "; it must be a float type, and the buffer's");
    int64_t last = tensor.offset;
    bool isEmpty = false;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (tensor.offset < 0 || tensor.stride[i] < 0)
        return fault(what + " has the stride " + std::to_string(tensor.stride[i]) + " and the offset " +
                     std::to_string(tensor.offset) + "; neither may be negative");
      isEmpty |= sizes[i] == 0;
      last = addSizes(last, multiplySizes(std::max<int64_t>(sizes[i] - 1, 0), tensor.stride[i]));
    }
    if (!isEmpty && multiplySizes(addSizes(last, 1), byteSize(tensor.dtype)) > argument.bytes)
      return fault(what + " reaches to byte " + std::to_string(multiplySizes(addSizes(last, 1), byteSize(tensor.dtype))) +
                   " of an argument of " + std::to_string(argument.bytes));
    return Status::success();
  }

  Status check() const {
    const auto &[kind, batch, heads, groups, queries, keys, depth, width, query, key, value, bias, gradient, results, scale,
                 causal, causalOffset, guarded] = attention;
    for (int64_t size : {batch, heads, groups, queries, keys, depth, width})
      if (size < 0)
        return fault("a size is " + std::to_string(size));
    if (groups == 0 ? heads != 0 : heads % groups != 0)
      return fault(std::to_string(groups) + " groups do not divide " + std::to_string(heads) + " heads");
    if (causalOffset < 0)
      return fault("the causal offset is " + std::to_string(causalOffset) + "; it must not be negative");
    const bool isBackward = kind == AttentionKind::Backward;
    if (results.size() != (isBackward ? 3u : 1u) || (gradient.argument >= 0) != isBackward)
      return fault("has " + std::to_string(results.size()) + " results and " +
                   (gradient.argument >= 0 ? "a gradient" : "no gradient") + "; forward there is one result, backward three and a gradient");
    const std::array<int64_t, 4> q = {batch, heads, queries, depth}, k = {batch, groups, keys, depth},
                                 v = {batch, groups, keys, width}, out = {batch, heads, queries, width};
    HPC_RETURN_IF_ERROR(checkTensor(query, "query", q, false));
    HPC_RETURN_IF_ERROR(checkTensor(key, "key", k, false));
    HPC_RETURN_IF_ERROR(checkTensor(value, "value", v, false));
    if (bias.argument != -1)
      HPC_RETURN_IF_ERROR(checkTensor(bias, "bias", {batch, heads, queries, keys}, false));
    if (!isBackward)
      return checkTensor(results[0], "result", out, true);
    HPC_RETURN_IF_ERROR(checkTensor(gradient, "gradient", out, false));
    HPC_RETURN_IF_ERROR(checkTensor(results[0], "query's gradient", q, true));
    HPC_RETURN_IF_ERROR(checkTensor(results[1], "key's gradient", k, true));
    return checkTensor(results[2], "value's gradient", v, true);
  }
};

} // namespace

Status checkAttention(const Stage &stage, const Kernel &kernel) {
  return Checker{stage, kernel, *kernel.attention}.check();
}

} // namespace hpc::plan
