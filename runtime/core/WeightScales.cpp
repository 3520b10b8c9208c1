// One pass over a tensor for its scales; what else is wanted of it is read when it is bound.
#include "runtime/core/WeightScales.h"

#include "runtime/base/Array.h"

namespace hpc {

static std::string indexText(const std::vector<int64_t> &shape, int64_t element) {
  std::string text;
  for (size_t dim = shape.size(); dim-- > 0; element /= shape[dim])
    text = std::to_string(element % shape[dim]) + (text.empty() ? "" : ", ") + text;
  return text;
}

Expected<const float *> WeightScales::of(const plan::Weight &weight, int32_t along, const std::byte *data) {
  Scales *scales;
  {
    std::lock_guard<std::mutex> lock(mutex);
    scales = &known[{&weight, along}];
  }
  std::call_once(scales->once, [&] {
    const Lines lines = Lines::along(weight.shape, size_t(along));
    scales->values.resize(size_t(lines.count()));
    if (std::optional<int64_t> element = int8Scales(data, lines, scales->values.data()))
      scales->status = Status::error(ErrorKind::Model, "weight '" + weight.name + "' has no int8: its element [" +
                                                           indexText(weight.shape, *element) +
                                                           "] is not finite; compile without --weights=int8");
  });
  if (!scales->status.ok())
    return scales->status;
  return static_cast<const float *>(scales->values.data());
}

} // namespace hpc
