// Recognizes epilogues from the yielded value upwards; any other op means that there is none.
#include "passes/Kernels/Regions/EpilogueRegion.h"

#include "compiler/Providers.h"

namespace hpc::kernels {

/// The activated value and its activation; the value itself if there is none.
static std::pair<plan::EpilogueKind, Value> findActivation(Value value) {
  if (auto gelu = value.getDefiningOp<nn::GeluOp>(); gelu && gelu.getTanhApproximation())
    return {plan::EpilogueKind::BiasGeluTanh, gelu.getOperand()};
  if (auto relu = value.getDefiningOp<nn::ReluOp>())
    return {plan::EpilogueKind::BiasRelu, relu.getOperand()};
  if (auto larger = value.getDefiningOp<nn::MaxOp>())
    for (unsigned side : {0, 1})
      if (matchPattern(larger->getOperand(1 - side), m_AnyZeroFloat()) &&
          larger->getOperand(side).getType() == value.getType())
        return {plan::EpilogueKind::BiasRelu, larger->getOperand(side)};
  return {plan::EpilogueKind::Bias, value};
}

/// The number of the operand that is seen as a vector along a last dim of `columns`.
static std::optional<unsigned> findBias(Value value, int64_t columns) {
  ArrayRef<int64_t> shape = nn::shapeOf(value);
  if (shape.empty() || shape.back() != columns || nn::tensorType(value).getNumElements() != columns)
    return std::nullopt;
  while (auto view = value.getDefiningOp<nn::ReshapeOp>())
    value = view.getOperand();
  auto argument = dyn_cast<BlockArgument>(value);
  return argument ? std::optional(argument.getArgNumber()) : std::nullopt;
}

/// Whether lower turns the value's op into one GEMM: its rows are all dims but the last.
static bool isPlainProduct(Value value) {
  auto matmul = aliasRoot(value).getDefiningOp<nn::MatmulOp>();
  if (!matmul || nn::shapeOf(matmul.getResult()).back() != nn::shapeOf(value).back())
    return false;
  auto isOne = [](ArrayRef<int64_t> shape) {
    return llvm::all_of(shape.drop_back(2), [](int64_t size) { return size == 1; });
  };
  return isOne(nn::shapeOf(matmul.getResult())) || (isOne(nn::shapeOf(matmul.getRhs())) && !matmul.getTransposeLhs());
}

std::optional<plan::Epilogue> findEpilogue(nn::FusedOp region) {
  if (region.getNumOperands() != 2 || region.getNumResults() != 1)
    return std::nullopt;
  Value yielded = region.getBody().front().getTerminator()->getOperand(0);
  auto [kind, value] = findActivation(yielded);
  auto add = value.getDefiningOp<nn::AddOp>();
  if (!add || !isa<FloatType>(nn::tensorType(value).getElementType()) || nn::shapeOf(value).empty())
    return std::nullopt;
  for (unsigned side : {0, 1}) {
    auto product = dyn_cast<BlockArgument>(add->getOperand(side));
    std::optional<unsigned> bias = findBias(add->getOperand(1 - side), nn::shapeOf(value).back());
    if (product && bias && *bias != product.getArgNumber() && product.getType() == region.getResult(0).getType() &&
        isPlainProduct(region.getOperand(product.getArgNumber())))
      return plan::Epilogue{kind, int32_t(product.getArgNumber()), int32_t(*bias)};
  }
  return std::nullopt;
}

} // namespace hpc::kernels
