// An attribute that a person wrote may have any form: whatever is not as it should be makes it none.
#include "compiler/EpilogueAttribute.h"

namespace hpc {

using plan::EpilogueKind;

static constexpr std::pair<EpilogueKind, StringLiteral> kinds[] = {{EpilogueKind::Bias, "bias"},
                                                                   {EpilogueKind::BiasRelu, "bias_relu"},
                                                                   {EpilogueKind::BiasGeluTanh, "bias_gelu_tanh"}};

DictionaryAttr toAttribute(MLIRContext *context, const plan::Epilogue &epilogue) {
  Builder b(context);
  NamedAttrList list;
  for (const auto &[kind, name] : kinds)
    if (kind == epilogue.kind)
      list.set("kind", b.getStringAttr(name));
  list.set("product", b.getI64IntegerAttr(epilogue.product));
  list.set("bias", b.getI64IntegerAttr(epilogue.bias));
  return list.getDictionary(context);
}

std::optional<plan::Epilogue> epilogueOf(Operation *op) {
  auto list = op->getAttrOfType<DictionaryAttr>(epilogueAttrName);
  if (!list)
    return std::nullopt;
  auto kind = list.getAs<StringAttr>("kind");
  auto product = list.getAs<IntegerAttr>("product"), bias = list.getAs<IntegerAttr>("bias");
  if (!kind || !product || !bias)
    return std::nullopt;
  for (const auto &[value, name] : kinds)
    if (kind == name)
      return plan::Epilogue{value, int32_t(product.getInt()), int32_t(bias.getInt())};
  return std::nullopt;
}

} // namespace hpc
