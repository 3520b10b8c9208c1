// Products of weights in int8 read the codes, and their columns are scaled behind the sum: the fewest bytes that a step
// can read. What else reads such a weight gets its values, as many bytes as of any other.
#include "compiler/Dialect/Dist/Correspondence.h"
#include "compiler/Dialect/NN/Parameter.h"
#include "compiler/Location.h"
#include "passes/Precision/Passes.h"

namespace hpc {
#define GEN_PASS_DEF_BINDINT8
#include "passes/Precision/Passes.h.inc"

/// Whether the use is a product that sums over the dim along which the weight has its lines.
static bool takesCodes(OpOperand &use, nn::ParameterOp parameter) {
  auto product = dyn_cast<nn::MatmulOp>(use.getOwner());
  if (!product || use.getOperandNumber() != 1 || product.getLhs() == product.getRhs())
    return false;
  int64_t rank = int64_t(nn::shapeOf(parameter.getResult()).size());
  return *parameter.getInt8Along() == rank - (product.getTransposeRhs() ? 1 : 2);
}

static RankedTensorType withElement(RankedTensorType type, Type element) {
  return RankedTensorType::get(type.getShape(), element, type.getEncoding());
}

/// The type with a dim taken out or put in, and its sharding likewise.
static RankedTensorType withoutDim(RankedTensorType type, size_t dim, Type element) {
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + dim);
  Attribute encoding = type.getEncoding();
  if (dist::ShardingAttr attr = dist::shardingAttrOf(type)) {
    dist::Sharding sharding = attr.getValue();
    sharding.dims.erase(sharding.dims.begin() + dim);
    encoding = dist::ShardingAttr::get(type.getContext(), sharding);
  }
  return RankedTensorType::get(shape, element, encoding);
}
static RankedTensorType withDimOfOne(RankedTensorType type, size_t dim) {
  SmallVector<int64_t> shape(type.getShape());
  shape.insert(shape.begin() + dim, 1);
  Attribute encoding = type.getEncoding();
  if (dist::ShardingAttr attr = dist::shardingAttrOf(type)) {
    dist::Sharding sharding = attr.getValue();
    sharding.dims.insert(sharding.dims.begin() + dim, dist::DimSharding());
    encoding = dist::ShardingAttr::get(type.getContext(), sharding);
  }
  return RankedTensorType::get(shape, type.getElementType(), encoding);
}

/// Weights are 0 in their padding, and so are codes: who wants it filled with 0 may read the weight itself.
static void passFills(nn::ParameterOp parameter) {
  for (Operation *user : llvm::make_early_inc_range(parameter->getUsers())) {
    auto fill = dyn_cast<dist::FillTailOp>(user);
    if (!fill || fill.getValue() != Builder(user->getContext()).getZeroAttr(fill.getValue().getType()))
      continue;
    fill.getResult().replaceAllUsesWith(parameter.getResult());
    fill.erase();
  }
}

static nn::ParameterOp codesOf(nn::ParameterOp parameter) {
  OpBuilder builder(parameter);
  auto codes = cast<nn::ParameterOp>(builder.clone(*parameter));
  codes.getResult().setType(withElement(nn::tensorType(parameter.getResult()), builder.getI8Type()));
  nn::Storage storage = parameter.stored();
  storage.type = builder.getF32Type();
  codes.setStored(storage);
  setValueIds(codes, {});
  return codes;
}

/// The scales as the columns of a product's result are: [n], or [..., 1, n] of a stack of matrices.
static Value scalesOf(nn::ParameterOp parameter) {
  OpBuilder builder(parameter);
  auto scales = cast<nn::ParameterOp>(builder.clone(*parameter));
  RankedTensorType type = nn::tensorType(parameter.getResult());
  size_t along = size_t(*parameter.getInt8Along());
  scales.getResult().setType(withoutDim(type, along, builder.getF32Type()));
  nn::Storage storage = parameter.stored();
  storage.int8Size = nn::storedShapeOf(parameter)[along];
  storage.type = {};
  if (parameter.isPart()) {
    storage.shape.erase(storage.shape.begin() + along);
    storage.starts.erase(storage.starts.begin() + along);
  }
  scales.setStored(storage);
  setValueIds(scales, {});
  if (type.getRank() == 2)
    return scales;
  RankedTensorType shown = withDimOfOne(nn::tensorType(scales.getResult()), size_t(type.getRank()) - 2);
  return nn::ReshapeOp::create(builder, parameter.getLoc(), shown, scales.getResult());
}

/// Scales the columns of a product that reads codes; its result was of any float type, the sum is f32.
static void scaleColumns(nn::MatmulOp product, Value codes, Value scales) {
  OpBuilder builder(product->getContext());
  builder.setInsertionPointAfter(product);
  RankedTensorType type = nn::tensorType(product.getResult()), sum = withElement(type, builder.getF32Type());
  ValueIds ids = valueIdsOf(product);
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : product.getResult().getUses())
    uses.push_back(&use);
  product.getRhsMutable().set(codes);
  product.getResult().setType(sum);
  setValueIds(product, {});
  Operation *last = nn::MulOp::create(builder, product.getLoc(), sum, product.getResult(), scales);
  if (type != sum)
    last = nn::CastOp::create(builder, product.getLoc(), type, last->getResult(0));
  setValueIds(last, ids); // it is the product's value that --verify should find
  for (OpOperand *use : uses)
    use->set(last->getResult(0));
}

namespace {
struct BindInt8Pass : impl::BindInt8Base<BindInt8Pass> {
  void runOnOperation() override {
    SmallVector<nn::ParameterOp> parameters;
    getOperation().walk([&](nn::ParameterOp parameter) {
      if (parameter.getInt8Along() && nn::int8FormOf(parameter) == nn::Int8Form::Values)
        parameters.push_back(parameter);
    });
    for (nn::ParameterOp parameter : parameters) {
      passFills(parameter);
      SmallVector<nn::MatmulOp> products;
      for (OpOperand &use : parameter.getResult().getUses())
        if (takesCodes(use, parameter))
          products.push_back(cast<nn::MatmulOp>(use.getOwner()));
      if (!products.empty()) {
        Value codes = codesOf(parameter), scales = scalesOf(parameter);
        for (nn::MatmulOp product : products)
          scaleColumns(product, codes, scales);
      }
      if (parameter.use_empty())
        parameter.erase();
      else
        mlir::emitRemark(parameter.getLoc())
            << "[hpc-bind-int8] '" << parameter.getName() << "' has int8 numbers but takes the memory of floats: "
            << nodeName((*parameter->user_begin())->getLoc()) << " does not read them as a product does";
    }
  }
};
} // namespace
} // namespace hpc
