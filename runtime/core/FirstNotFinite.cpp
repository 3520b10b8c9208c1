// An instruction is looked at with all the bytes that it may write: those that it leaves as they are were found finite before.
#include "runtime/core/FirstNotFinite.h"

#include "runtime/base/HalfFloat.h"
#include "runtime/base/NumberText.h"
#include "runtime/plan/Access.h"

#include <algorithm>
#include <cstring>

namespace hpc {

template <typename Stored> static double storedNumber(const std::byte *at, double (*widen)(Stored)) {
  Stored value;
  std::memcpy(&value, at, sizeof value);
  return widen(value);
}

static double floatAt(const std::byte *bytes, DType type, int64_t element) {
  const std::byte *at = bytes + element * byteSize(type);
  switch (type) {
  case DType::F64:
    return storedNumber<double>(at, [](double value) { return value; });
  case DType::F16:
    return storedNumber<uint16_t>(at, [](uint16_t value) { return double(halfToFloat(value)); });
  case DType::BF16:
    return storedNumber<uint16_t>(at, [](uint16_t value) { return double(bfloatToFloat(value)); });
  default:
    return storedNumber<float>(at, [](float value) { return double(value); });
  }
}

/// "[0, 3, 17]": the place of an element in a buffer; its number where the buffer has no such shape.
static std::string elementText(int64_t element, const std::vector<int64_t> &box) {
  std::string text;
  for (size_t dim = box.size(); dim-- > 0; element /= std::max<int64_t>(box[dim], 1))
    text = std::to_string(dim > 0 ? element % std::max<int64_t>(box[dim], 1) : element) + (text.empty() ? "" : ", ") + text;
  return "[" + text + "]";
}

static Status checkWritten(const ObservedInstruction &seen, const plan::Buffer &buffer, const std::string &tensor, const plan::BufferAccess &access) {
  const int64_t size = byteSize(buffer.dtype);
  const std::byte *bytes = seen.buffer(access.ref.buffer);
  const int64_t end = std::min(access.ref.byteOffset + access.bytes, buffer.bytes) / size;
  for (int64_t element = access.ref.byteOffset / size; element < end; ++element) {
    const double value = floatAt(bytes, buffer.dtype, element);
    if (std::isnan(value) || (std::isinf(value) && value > 0))
      return Status::error(ErrorKind::Model, "writes " + numberText(value) + " into '" + tensor + "' (" + std::string(name(buffer.dtype)) + " " +
                                                 shapeText(buffer.box) + ") at " + elementText(element, buffer.box));
  }
  return Status::success();
}

Observer firstNotFinite(const plan::Plan &plan) {
  return [&plan](const ObservedInstruction &seen) {
    const plan::Stage &stage = plan.stages[size_t(seen.place.stage)];
    const plan::Instruction &instruction = stage.programs[size_t(seen.program)].instructions[size_t(seen.instruction)];
    if (plan::postedRequest(instruction.action) >= 0)
      return Status::success();
    const auto *load = std::get_if<plan::LoadInput>(&instruction.action);
    for (const plan::BufferAccess &access : plan::accessesOf(plan, instruction))
      if (const plan::Buffer &buffer = stage.buffers[size_t(access.ref.buffer)]; access.write && isFloat(buffer.dtype))
        HPC_RETURN_IF_ERROR(checkWritten(seen, buffer, load ? plan.inputs[size_t(load->input)].name : buffer.name, access));
    return Status::success();
  };
}

} // namespace hpc
