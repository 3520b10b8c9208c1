// An attribute that a person wrote may have any form: whatever is not as it should be makes it none.
#include "compiler/AttentionAttribute.h"

namespace hpc {

static Attribute toAttribute(Builder &b, const plan::AttentionTensor &tensor) {
  return b.getDenseI64ArrayAttr({tensor.argument, int64_t(tensor.dtype), tensor.offset, tensor.stride[0],
                                 tensor.stride[1], tensor.stride[2], tensor.stride[3]});
}

DictionaryAttr toAttribute(MLIRContext *context, const plan::Attention &a) {
  Builder b(context);
  NamedAttrList list;
  list.set("kind", b.getStringAttr(a.kind == plan::AttentionKind::Forward ? "forward" : "backward"));
  list.set("sizes", b.getDenseI64ArrayAttr({a.batch, a.heads, a.groups, a.queries, a.keys, a.depth, a.width}));
  list.set("query", toAttribute(b, a.query));
  list.set("key", toAttribute(b, a.key));
  list.set("value", toAttribute(b, a.value));
  if (a.bias.argument >= 0)
    list.set("bias", toAttribute(b, a.bias));
  if (a.gradient.argument >= 0)
    list.set("gradient", toAttribute(b, a.gradient));
  SmallVector<Attribute> results;
  for (const plan::AttentionTensor &result : a.results)
    results.push_back(toAttribute(b, result));
  list.set("results", b.getArrayAttr(results));
  list.set("scale", b.getF64FloatAttr(a.scale));
  if (a.causal)
    list.set("causal_offset", b.getI64IntegerAttr(a.causalOffset));
  if (a.guarded)
    list.set("guarded", b.getUnitAttr());
  return list.getDictionary(context);
}

static bool read(Attribute attribute, plan::AttentionTensor &tensor) {
  auto numbers = dyn_cast_or_null<DenseI64ArrayAttr>(attribute);
  if (!numbers || numbers.size() != 7 || numbers[1] < 0 || numbers[1] >= numDTypes)
    return false;
  tensor = {int32_t(numbers[0]), DType(numbers[1]), numbers[2], {numbers[3], numbers[4], numbers[5], numbers[6]}};
  return true;
}

std::optional<plan::Attention> attentionOf(Operation *op) {
  auto list = op->getAttrOfType<DictionaryAttr>(attentionAttrName);
  if (!list)
    return std::nullopt;
  auto kind = list.getAs<StringAttr>("kind");
  auto sizes = list.getAs<DenseI64ArrayAttr>("sizes");
  auto results = list.getAs<ArrayAttr>("results");
  auto scale = list.getAs<FloatAttr>("scale");
  if (!kind || !sizes || sizes.size() != 7 || !results || !scale)
    return std::nullopt;
  plan::Attention a;
  a.kind = kind.getValue() == "forward" ? plan::AttentionKind::Forward : plan::AttentionKind::Backward;
  std::tie(a.batch, a.heads, a.groups, a.queries, a.keys, a.depth, a.width) =
      std::tuple(sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], sizes[6]);
  if (!read(list.get("query"), a.query) || !read(list.get("key"), a.key) || !read(list.get("value"), a.value) ||
      (list.contains("bias") && !read(list.get("bias"), a.bias)) ||
      (list.contains("gradient") && !read(list.get("gradient"), a.gradient)))
    return std::nullopt;
  for (Attribute result : results)
    if (!read(result, a.results.emplace_back()))
      return std::nullopt;
  a.scale = scale.getValueAsDouble();
  if (auto offset = list.getAs<IntegerAttr>("causal_offset")) {
    a.causal = true;
    a.causalOffset = offset.getInt();
  }
  a.guarded = list.contains("guarded");
  return a;
}

} // namespace hpc
