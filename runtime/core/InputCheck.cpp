// Numbers are read as 64-bit integers, row by row of the box that is looked up.
#include "runtime/core/InputCheck.h"

#include "runtime/base/ArrayElements.h"
#include "runtime/base/CountText.h"

namespace hpc {

/// A default Array has the shape of a scalar but holds nothing: the bytes count too.
bool fits(const Array &array, const plan::Port &port) {
  return array.dtype == port.dtype && array.shape == port.shape &&
         checkedBytes(port.dtype, port.shape) == int64_t(array.data.size());
}

static std::string positionText(const std::vector<int64_t> &position) {
  std::string text;
  for (int64_t index : position)
    text += (text.empty() ? "" : ", ") + std::to_string(index);
  return "[" + text + "]";
}

static std::string takenText(const plan::Lookup &lookup) {
  std::string ignored = lookup.ignored ? ", and " + std::to_string(*lookup.ignored) + " for none" : "";
  return std::to_string(lookup.low) + " to " + std::to_string(lookup.high - 1) + ignored;
}

/// All dims of the box but the last one count on, as digits do; false behind the last row.
static bool nextRow(const plan::Lookup &lookup, std::vector<int64_t> &position) {
  for (size_t dim = position.size(); dim-- > 1;) {
    if (++position[dim - 1] < lookup.end[dim - 1])
      return true;
    position[dim - 1] = lookup.begin[dim - 1];
  }
  return false;
}

/// The first number of the box that names nothing.
static Status checkLookup(const plan::Port &port, const plan::Lookup &lookup, const Array &array) {
  for (size_t dim = 0; dim < port.shape.size(); ++dim)
    if (lookup.begin[dim] >= lookup.end[dim])
      return Status::success();
  std::vector<int64_t> position = lookup.begin;
  while (true) {
    int64_t index = 0;
    for (size_t dim = 0; dim < position.size(); ++dim)
      index = index * port.shape[dim] + position[dim];
    int64_t row = position.empty() ? 1 : lookup.end.back() - lookup.begin.back();
    for (int64_t i = 0; i < row; ++i) {
      int64_t number = integerAt(array, index + i);
      if ((number >= lookup.low && number < lookup.high) || number == lookup.ignored)
        continue;
      if (!position.empty())
        position.back() += i;
      return Status::error(ErrorKind::Usage, "input '" + port.name + "' has " + integerTextAt(array, index + i) + " at " +
                                                 positionText(position) + "; '" + lookup.reader + "' takes " +
                                                 takenText(lookup) +
                                                 "; mend the data, or see whether they were made for another model");
    }
    if (!nextRow(lookup, position))
      return Status::success();
  }
}

Status checkLookups(const plan::Port &port, const Array &array) {
  for (const plan::Lookup &lookup : port.lookups)
    HPC_RETURN_IF_ERROR(checkLookup(port, lookup, array));
  return Status::success();
}

Status checkInputs(const plan::Plan &plan, const std::vector<Array> &inputs) {
  if (inputs.size() != plan.inputs.size())
    return Status::error(ErrorKind::Usage, countText(int64_t(inputs.size()), "input") + " given, the plan has " +
                                               std::to_string(plan.inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const plan::Port &port = plan.inputs[i];
    if (!fits(inputs[i], port))
      return Status::error(ErrorKind::Usage, "input '" + port.name + "' is " + shapeText(inputs[i].shape) + " of " +
                                                 name(inputs[i].dtype) + ", the plan was compiled for " +
                                                 shapeText(port.shape) + " of " + name(port.dtype) +
                                                 "; convert the array, or compile again with --dim for other shapes");
    HPC_RETURN_IF_ERROR(checkLookups(port, inputs[i]));
    if (port.largest && (integerAt(inputs[i], 0) < 0 || integerAt(inputs[i], 0) > *port.largest))
      return Status::error(ErrorKind::Usage, "input '" + port.name + "' is " + integerTextAt(inputs[i], 0) + ", the plan takes 0 to " +
                                                 std::to_string(*port.largest) + "; give one of these, or compile for more");
  }
  return Status::success();
}

} // namespace hpc
