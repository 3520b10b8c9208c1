// Reduction lengths along paths, and comparisons.
#include "tools/hpc-opt/ErrorBound.h"

#include "compiler/Dialect/Dist/Correspondence.h"

#include <cmath>

namespace hpc {

/// The product of the factors that an op sums over, composites' inner ones included; 1 for an op that sums nothing.
static double reductionLength(Operation *op) {
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  if (!ruled)
    return 0;
  double length = 1;
  for (const ShardingFactor &factor : ruled.getShardingRule().factors)
    if (factor.reduction != Reduction::None || factor.isInternal)
      length += double(factor.size);
  return length;
}

/// Half a unit in the last place of 1 where that is far above f32's; else 0.
static double narrowRounding(Value value) {
  Type type = getElementTypeOrSelf(value.getType());
  return type.isF16() ? 0x1p-11 : type.isBF16() ? 0x1p-8 : 0;
}

void findErrorBounds(func::FuncOp function, Reference &reference) {
  llvm::DenseMap<Value, double> lengths;   ///< of the longest path, in summed terms
  llvm::DenseMap<Value, double> roundings; ///< of the path with most: the squares of its roundings to 16-bit floats
  auto bound = [&](Value value) {
    return 2 * std::sqrt(singleEpsilon * singleEpsilon * std::max(lengths.lookup(value), 4.0) +
                         roundings.lookup(value));
  };
  for (Operation &op : function.getBody().front()) {
    if (isa<func::ReturnOp>(op)) {
      for (Value result : op.getOperands())
        reference.outputBound.push_back(bound(result));
      continue;
    }
    double longest = 0, rounded = 0;
    for (Value operand : op.getOperands()) {
      longest = std::max(longest, lengths.lookup(operand));
      rounded = std::max(rounded, roundings.lookup(operand));
    }
    for (Value result : op.getResults()) {
      lengths[result] = longest + reductionLength(&op);
      roundings[result] = rounded + narrowRounding(result) * narrowRounding(result);
      if (auto id = op.getAttrOfType<IntegerAttr>(valueIdAttrName))
        reference.relativeBound[id.getInt()] = bound(result);
    }
  }
}

double largestMagnitude(const Tensor &tensor) {
  double largest = 0;
  for (int64_t i = 0; i < tensor.size(); ++i)
    if (double magnitude = std::abs(tensor.number(i)); std::isfinite(magnitude) && magnitude < maskMagnitude)
      largest = std::max(largest, magnitude);
  return largest;
}

std::string indexText(const std::vector<int64_t> &shape, int64_t flat) {
  std::vector<std::string> digits(shape.size());
  for (size_t dim = shape.size(); dim-- > 0; flat /= shape[dim])
    digits[dim] = std::to_string(flat % shape[dim]);
  return llvm::join(digits, ", ");
}

std::string differenceText(double found, double expected, double bound) {
  char text[160];
  std::snprintf(text, sizeof(text), "is %.9g, should be %.9g (off by %.3g, bound %.3g)", found, expected,
                std::abs(found - expected), bound);
  return text;
}

bool agree(double found, double expected, double bound) {
  if (std::isnan(expected) || std::isnan(found))
    return std::isnan(expected) && std::isnan(found);
  if (std::isinf(expected) || std::isinf(found))
    return found == expected;
  if (std::abs(expected) >= maskMagnitude)
    bound = 8 * singleEpsilon * std::abs(expected);
  return std::abs(found - expected) <= bound;
}

std::optional<Difference> firstDifference(const Tensor &found, const Tensor &expected, double bound, double &worst) {
  double largest = std::max(largestMagnitude(expected), 1e-300);
  for (int64_t i = 0; i < expected.size(); ++i) {
    double is = found.number(i), should = expected.number(i);
    if (!agree(is, should, expected.isFloat() ? bound : 0))
      return Difference{indexText(expected.shape, i), "", is, should, expected.isFloat() ? bound : 0, i};
    if (std::isfinite(is) && std::isfinite(should) && std::abs(should) < maskMagnitude)
      worst = std::max(worst, std::abs(is - should) / largest);
  }
  return std::nullopt;
}

} // namespace hpc
