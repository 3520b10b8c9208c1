// Attention by a recurrent state instead of a softmax, unrolled step by step: a step reads and writes one matrix a
// head, decayed and corrected by the update rule.
#include "compiler/Import/OnnxOps/Dims.h"
#include "runtime/base/CountText.h"

#include <cmath>

namespace hpc::onnx {
namespace {

constexpr int64_t maxSteps = 2000;

/// Step `time` of [batch, steps, ...], without the dim of steps.
Value step(NodeImport &n, Value x, int64_t time) {
  SmallVector<int64_t> sizes = n.b.shape(x), starts(sizes.size(), 0), ones(sizes.size(), 1);
  starts[1] = time;
  sizes[1] = 1;
  Value slab = n.b.slice(x, starts, ones, sizes);
  sizes.erase(sizes.begin() + 1);
  return n.b.reshape(slab, sizes);
}

/// [batch, steps, heads * size] as [batch, steps, heads, more..., size], computed with in f32 or wider.
Value heads(NodeImport &n, Value x, ArrayRef<int64_t> split) {
  SmallVector<int64_t> shape = n.b.shape(x);
  if (shape.size() != 3 || elementCount(split) != shape[2])
    return n.b.fail("an input of " + countText(shape.size(), "dim") +
                    " does not split into heads; it must be [batch, steps, "
                    "heads * size]");
  SmallVector<int64_t> to = {shape[0], shape[1]};
  llvm::append_range(to, split);
  Value wide = n.b.dtype(x) == DType::F64 ? x : n.b.cast(x, DType::F32);
  return n.b.reshape(wide, to);
}

/// query, key, value, past state?, decay?, beta?; heads i * g ... of the query share state i.
Results linearAttention(NodeImport &n) {
  std::string rule = n.text("update_rule", "gated_delta");
  bool isGated = rule == "gated" || rule == "gated_delta", isDelta = rule == "delta" || rule == "gated_delta";
  int64_t queryHeads = n.integer("q_num_heads", 0), stateHeads = n.integer("kv_num_heads", 0);
  SmallVector<int64_t> query = n.b.shape(n.in(0)), key = n.b.shape(n.in(1)), value = n.b.shape(n.in(2));
  if (!isGated && !isDelta && rule != "linear")
    return {n.b.fail("update rule '" + rule + "' is none of linear, gated, delta, gated_delta")};
  if ((isGated && !n.has(4)) || (isDelta && !n.has(5)))
    return {n.b.fail("update rule '" + rule + "' needs " + (isGated && !n.has(4) ? "a decay" : "a beta"))};
  if (stateHeads < 1 || queryHeads < 1 || queryHeads % stateHeads || query.size() != 3 || key.size() != 3 ||
      value.size() != 3 || key[2] % stateHeads || value[2] % stateHeads)
    return {
        n.b.fail("queries, keys and values must be [batch, steps, heads * size], with as many heads of the query for "
                 "each head of the keys")};
  int64_t batch = query[0], steps = query[1], group = queryHeads / stateHeads;
  int64_t keySize = key[2] / stateHeads, valueSize = value[2] / stateHeads;
  if (steps < 1 || steps > maxSteps)
    return {n.unsupported(countText(steps, "step") + "; 1 to " + std::to_string(maxSteps) + " are unrolled")};
  Value q = heads(n, n.in(0), {stateHeads, group, keySize}), k = heads(n, n.in(1), {stateHeads, keySize});
  Value v = heads(n, n.in(2), {stateHeads, 1, valueSize}), decay, beta;
  if (isGated) { // for each number of a key, or one for all
    bool isPerKey = n.b.shape(n.in(4)).back() == stateHeads * keySize;
    decay = n.b.unary<nn::ExpOp>(heads(n, n.in(4), {stateHeads, isPerKey ? keySize : 1, 1}));
  }
  if (isDelta)
    beta = heads(n, n.in(5), {n.b.shape(n.in(5)).back(), 1, 1});
  SmallVector<int64_t> stateShape = {batch, stateHeads, keySize, valueSize};
  Value state = n.has(3) ? n.b.cast(n.in(3), n.b.dtype(q)) : n.b.broadcast(n.b.scalar(0, q), stateShape);
  if (!n.b.status().ok() || n.b.shape(state) != stateShape)
    return {n.b.fail("its past state must be [batch, heads, size of a key, size of a value]")};
  double scale = n.number("scale", 0);
  if (scale == 0)
    scale = 1 / std::sqrt(double(keySize));
  SmallVector<Value> outputs;
  for (int64_t time = 0; time < steps && n.b.status().ok(); ++time) {
    if (isGated)
      state = n.b.mul(state, step(n, decay, time));
    Value row = insertDim(n, step(n, k, time), 2), column = insertDim(n, step(n, k, time), 3),
          update = step(n, v, time);
    if (isDelta) // minus the state's answer before this step
      update = n.b.mul(n.b.sub(update, n.b.matmul(row, state)), step(n, beta, time));
    state = n.b.add(state, n.b.mul(column, update));
    Value answer = n.b.matmul(step(n, q, time), state);
    outputs.push_back(insertDim(n, n.b.mul(answer, n.b.scalar(scale, answer)), 1));
  }
  if (!n.b.status().ok())
    return {};
  Value all = n.b.reshape(n.b.concat(outputs, 1), {batch, steps, queryHeads * valueSize});
  return {n.b.cast(all, n.b.dtype(n.in(0))), n.b.cast(state, n.b.dtype(n.has(3) ? n.in(3) : n.in(0)))};
}

const OnnxOp linearAttentionTable[] = {{"LinearAttention", 27, linearAttention}};

} // namespace

ArrayRef<OnnxOp> linearAttentionOps() { return linearAttentionTable; }

} // namespace hpc::onnx
