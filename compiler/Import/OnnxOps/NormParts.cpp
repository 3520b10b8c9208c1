// The sum of f16's squares soon is more than f16 can hold: 1,000 elements of 9. So the standard takes statistics in
// f32.
#include "compiler/Import/OnnxOps/NormParts.h"

namespace hpc::onnx {

Value stashed(NodeImport &n, Value x) { return n.integer("stash_type", 1) == 1 ? n.b.widened(x) : x; }

Value meanLast(NodeImport &n, Value x) { return n.b.mean(x, {n.b.rank(x) - 1}); }

static Value nnNorm(NodeImport &n, NormKind kind, Value x, Value weight, Value bias, double epsilon) {
  return kind == NormKind::Rms ? n.b.rmsNorm(x, weight, epsilon) : n.b.layerNorm(x, weight, bias, epsilon);
}

Value normOf(NodeImport &n, NormKind kind, Value x, Value weight, Value bias, double epsilon) {
  for (Value *own : {&weight, &bias})
    if (*own && !n.b.isKnown(x))
      *own = n.b.parameter(*own);
  Value wide = stashed(n, x);
  if (wide == x)
    return nnNorm(n, kind, x, weight, bias, epsilon);
  Value normal = n.b.cast(nnNorm(n, kind, wide, Value(), Value(), epsilon), n.b.dtype(x));
  if (weight)
    normal = n.b.mul(normal, weight);
  return bias ? n.b.add(normal, bias) : normal;
}

} // namespace hpc::onnx
