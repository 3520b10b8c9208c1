// Ops on sequences of tensors: lists that exist only while a model is imported. A reader of one element reads that
// tensor.
#include "compiler/Import/OnnxOps/Dims.h"
#include "runtime/base/CountText.h"
#include "runtime/base/IntegerMath.h"
#include "runtime/plan/CheckedMath.h"

namespace hpc::onnx {
namespace {

/// Input `index` as a place 0 ... last of a list of `size`, negative ones from its end; an error and 0 when it is none.
size_t place(NodeImport &n, size_t index, int64_t size, int64_t last) {
  SmallVector<int64_t> given = n.b.integers(n.in(index), "position");
  if (!n.b.status().ok())
    return 0;
  if (given.size() != 1) {
    n.b.fail("its position must be one number");
    return 0;
  }
  if (given[0] >= -size && given[0] <= last)
    return size_t(given[0] < 0 ? given[0] + size : given[0]);
  n.b.fail("position " + std::to_string(given[0]) + " is out of range in a sequence of " + countText(size, "tensor"));
  return 0;
}

/// The sizes of the parts along a dim of `size`: given one by one, by one number for all (the last may be smaller),
/// or 1.
SmallVector<int64_t> partSizes(NodeImport &n, int64_t size) {
  int64_t each = 1;
  if (n.has(1)) {
    SmallVector<int64_t> given = n.b.integers(n.in(1), "split");
    if (!n.b.status().ok())
      return {};
    if (n.b.rank(n.in(1)) == 1) {
      int64_t sum = 0;
      for (int64_t part : given)
        sum = part < 0 ? plan::saturated : plan::addSizes(sum, part);
      if (sum != size)
        n.b.fail("its sizes do not add up to " + std::to_string(size));
      return given;
    }
    if (given.size() != 1 || given[0] < 1) {
      n.b.fail("its split must be one size of 1 or more, or a list of sizes");
      return {};
    }
    each = given[0];
  }
  if (!n.b.checkSequence(ceilDiv(size, each)))
    return {};
  SmallVector<int64_t> sizes;
  for (int64_t start = 0; start < size; start += sizes.back())
    sizes.push_back(std::min(each, size - start));
  return sizes;
}

Results splitToSequence(NodeImport &n) {
  SmallVector<int64_t> from = n.b.shape(n.in(0));
  if (from.empty())
    return {n.b.fail("a scalar cannot be split")};
  size_t dim = size_t(n.axis(n.integer("axis", 0), int64_t(from.size())));
  bool keepsDim = n.has(1) || n.integer("keepdims", 1);
  SmallVector<int64_t> sizes = partSizes(n, from[dim]), starts(from.size(), 0), steps(from.size(), 1), part = from;
  SmallVector<Value> parts;
  for (int64_t size : sizes) {
    if (!n.b.status().ok())
      return {};
    part[dim] = size;
    Value slab = n.b.slice(n.in(0), starts, steps, part);
    if (!keepsDim) {
      SmallVector<int64_t> without = part;
      without.erase(without.begin() + int64_t(dim));
      slab = n.b.reshape(slab, without);
    }
    parts.push_back(slab);
    starts[dim] += size;
  }
  return {n.b.sequence(parts)};
}

Results construct(NodeImport &n) {
  SmallVector<Value> parts;
  for (size_t i = 0; i < n.numInputs(); ++i)
    parts.push_back(n.in(i));
  return {n.b.sequence(parts)};
}

Results empty(NodeImport &n) { return {n.b.sequence({})}; }

Results at(NodeImport &n) {
  SmallVector<Value> parts = n.sequence(0);
  size_t position = place(n, 1, int64_t(parts.size()), int64_t(parts.size()) - 1);
  return {n.b.status().ok() ? parts[position] : Value()};
}

Results insert(NodeImport &n) {
  SmallVector<Value> parts = n.sequence(0);
  size_t position = n.has(2) ? place(n, 2, int64_t(parts.size()), int64_t(parts.size())) : parts.size();
  parts.insert(parts.begin() + int64_t(position), n.in(1));
  return {n.b.sequence(parts)};
}

Results erase(NodeImport &n) {
  SmallVector<Value> parts = n.sequence(0);
  if (n.b.status().ok() && parts.empty())
    return {n.b.fail("nothing can be taken out of an empty sequence")};
  size_t position = n.has(1) ? place(n, 1, int64_t(parts.size()), int64_t(parts.size()) - 1) : parts.size() - 1;
  if (n.b.status().ok())
    parts.erase(parts.begin() + int64_t(position));
  return {n.b.sequence(parts)};
}

Results length(NodeImport &n) {
  Tensor count(DType::I64, {});
  count.ints[0] = int64_t(n.sequence(0).size());
  return {n.b.known(std::move(count))};
}

Results concatFromSequence(NodeImport &n) {
  SmallVector<Value> parts = n.sequence(0);
  if (n.b.status().ok() && parts.empty())
    return {n.b.fail("nothing to concatenate: its sequence is empty")};
  if (!n.b.status().ok())
    return {};
  bool isNew = n.integer("new_axis", 0);
  int64_t axis = n.axis(n.integer("axis", 0), n.b.rank(parts[0]) + isNew);
  if (isNew)
    for (Value part : parts)
      if (n.b.shape(part) != n.b.shape(parts[0]))
        return {n.b.fail("its tensors have the shapes " + shapeText(nn::shapeOf(parts[0]).vec()) + " and " +
                         shapeText(nn::shapeOf(part).vec()) + "; along a new axis they must be the same")};
  if (isNew)
    for (Value &part : parts)
      part = insertDim(n, part, axis);
  return {n.b.concat(parts, axis)};
}

/// The body takes the elements of one place, of the first input and of each other that is a sequence.
Results map(NodeImport &n) {
  const Subgraph *body = n.graph("body");
  size_t count = n.sequence(0).size();
  if (!n.b.status().ok())
    return {};
  if (body->inputs.size() != n.numInputs())
    return {n.b.fail("its body takes " + countText(int64_t(body->inputs.size()), "value") + " and it has " +
                     countText(int64_t(n.numInputs()), "input") + "; they must be as many")};
  std::vector<SmallVector<Value>> given, made(body->outputs.size());
  for (size_t i = 0; i < n.numInputs(); ++i) {
    bool isList = n.b.isSequence(n.any(i));
    given.push_back(isList ? n.sequence(i) : SmallVector<Value>(count, n.in(i)));
    if (given.back().size() != count)
      return {n.b.fail("its sequences have " + std::to_string(count) + " and " +
                       countText(int64_t(given.back().size()), "element") + "; they must be as many")};
  }
  for (size_t at = 0; at < count; ++at) {
    SmallVector<Value> inputs;
    for (const SmallVector<Value> &list : given)
      inputs.push_back(list[at]);
    Results results = n.importBody(*body, inputs);
    if (!n.b.status().ok())
      return {};
    for (size_t i = 0; i < made.size(); ++i)
      made[i].push_back(results[i]);
  }
  Results results;
  for (const SmallVector<Value> &list : made)
    results.push_back(n.b.sequence(list));
  return results;
}

const OnnxOp sequenceTable[] = {
    {"SplitToSequence", 11, splitToSequence},
    {"SequenceConstruct", 11, construct},
    {"SequenceEmpty", 11, empty},
    {"SequenceAt", 11, at},
    {"SequenceInsert", 11, insert},
    {"SequenceErase", 11, erase},
    {"SequenceLength", 11, length},
    {"ConcatFromSequence", 11, concatFromSequence},
    {"SequenceMap", 17, map},
};

} // namespace

ArrayRef<OnnxOp> sequenceOps() { return sequenceTable; }

} // namespace hpc::onnx
