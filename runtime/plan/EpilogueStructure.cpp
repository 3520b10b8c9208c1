// That an epilogue's arguments are what a library's product could read and write in the kernel's place.
#include "runtime/plan/PlanNames.h"
#include "runtime/plan/PlanStructure.h"

namespace hpc::plan {

Status checkEpilogue(const Stage &stage, const Kernel &kernel) {
  const Epilogue &epilogue = *kernel.epilogue;
  auto fault = [&](const std::string &message) {
    return Status::error(ErrorKind::Plan, std::string("epilogue ") + name(epilogue.kind) + ": " + message);
  };
  if (kernel.args.size() != 3 || !kernel.scalars.empty())
    return fault("the kernel has " + std::to_string(kernel.args.size()) + " arguments and " +
                 std::to_string(kernel.scalars.size()) + " scalars; it must have product, bias and result alone");
  if (epilogue.product == epilogue.bias)
    return fault("product and bias are both argument " + std::to_string(epilogue.product));
  for (int32_t operand : {epilogue.product, epilogue.bias}) {
    const std::string what = operand == epilogue.product ? "product" : "bias";
    if (operand < 0 || operand > 2)
      return fault(what + " is argument " + std::to_string(operand) + " of 3");
    const KernelArg &argument = kernel.args[size_t(operand)];
    if (!argument.reads || argument.writes)
      return fault(what + " is argument " + std::to_string(operand) + ", which must be read and not written");
  }
  const int32_t result = 3 - epilogue.product - epilogue.bias;
  const KernelArg &product = kernel.args[size_t(epilogue.product)], &bias = kernel.args[size_t(epilogue.bias)],
                  &written = kernel.args[size_t(result)];
  if (!written.writes || written.reads)
    return fault("the result is argument " + std::to_string(result) + ", which must be written and not read");
  const DType dtype = stage.buffers[size_t(written.place.buffer)].dtype;
  for (const KernelArg *argument : {&product, &bias})
    if (DType held = stage.buffers[size_t(argument->place.buffer)].dtype; held != dtype || !isFloat(dtype))
      return fault(std::string("takes ") + hpc::name(held) + " to " + hpc::name(dtype) +
                   "; all must be of one float type");
  if (product.bytes != written.bytes)
    return fault("the product has " + std::to_string(product.bytes) + " bytes, the result " +
                 std::to_string(written.bytes) + "; they must be as large");
  if (bias.bytes == 0 ? product.bytes != 0 : product.bytes % bias.bytes != 0 || bias.bytes % byteSize(dtype) != 0)
    return fault("a bias of " + std::to_string(bias.bytes) + " bytes is no row of a product of " +
                 std::to_string(product.bytes));
  return Status::success();
}

} // namespace hpc::plan
