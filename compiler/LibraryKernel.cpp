// Field by field. The kinds of both sides have the same numbers.
#include "compiler/LibraryKernel.h"

#include "compiler/ElementType.h"

namespace hpc {

static_assert(int(nn::AttentionKind::backward) == int(plan::AttentionKind::Backward) &&
              int(nn::EpilogueKind::bias_gelu_tanh) == int(plan::EpilogueKind::BiasGeluTanh));

static nn::AttentionTensorAttr toAttribute(MLIRContext *context, const plan::AttentionTensor &tensor) {
  if (tensor.argument < 0)
    return {};
  return nn::AttentionTensorAttr::get(context, tensor.argument, typeOf(tensor.dtype, context), tensor.offset,
                                      DenseI64ArrayAttr::get(context, tensor.stride));
}
static plan::AttentionTensor toPlan(nn::AttentionTensorAttr tensor) {
  if (!tensor)
    return {};
  ArrayRef<int64_t> strides = tensor.getStrides();
  return {int32_t(tensor.getArgument()), dtypeOf(tensor.getType()), tensor.getOffset(), {strides[0], strides[1], strides[2], strides[3]}};
}

nn::AttentionAttr toAttribute(MLIRContext *context, const plan::Attention &a) {
  SmallVector<Attribute> results;
  for (const plan::AttentionTensor &result : a.results)
    results.push_back(toAttribute(context, result));
  return nn::AttentionAttr::get(context, nn::AttentionKind(a.kind), a.batch, a.heads, a.groups, a.queries, a.keys, a.depth, a.width,
                                toAttribute(context, a.query), toAttribute(context, a.key), toAttribute(context, a.value),
                                toAttribute(context, a.bias), toAttribute(context, a.gradient), ArrayAttr::get(context, results),
                                Builder(context).getF64FloatAttr(a.scale), a.causal ? std::optional(a.causalOffset) : std::nullopt, a.guarded);
}
plan::Attention toPlan(nn::AttentionAttr attention) {
  plan::Attention a;
  a.kind = plan::AttentionKind(attention.getKind());
  a.batch = attention.getBatch();
  a.heads = attention.getHeads();
  a.groups = attention.getGroups();
  a.queries = attention.getQueries();
  a.keys = attention.getKeys();
  a.depth = attention.getDepth();
  a.width = attention.getWidth();
  a.query = toPlan(attention.getQuery());
  a.key = toPlan(attention.getKey());
  a.value = toPlan(attention.getValue());
  a.bias = toPlan(attention.getBias());
  a.gradient = toPlan(attention.getGradient());
  for (auto result : attention.getResults().getAsRange<nn::AttentionTensorAttr>())
    a.results.push_back(toPlan(result));
  a.scale = attention.getScale().getValueAsDouble();
  a.causal = attention.getCausalOffset().has_value();
  a.causalOffset = attention.getCausalOffset().value_or(0);
  a.guarded = attention.getGuarded();
  return a;
}

nn::EpilogueAttr toAttribute(MLIRContext *context, const plan::Epilogue &epilogue) {
  return nn::EpilogueAttr::get(context, nn::EpilogueKind(epilogue.kind), epilogue.product, epilogue.bias);
}
plan::Epilogue toPlan(nn::EpilogueAttr epilogue) {
  return {plan::EpilogueKind(epilogue.getKind()), int32_t(epilogue.getProduct()), int32_t(epilogue.getBias())};
}

} // namespace hpc
