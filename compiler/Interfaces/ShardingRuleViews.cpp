// Rules built from shapes instead of text: elementwise ops, views, reductions.
#include "compiler/Interfaces/ShardingRule.h"

namespace hpc {

namespace {
ArrayRef<int64_t> shapeOf(Type type) { return cast<RankedTensorType>(type).getShape(); }

/// Adds a factor and returns its index; a size of 1 has none (-1).
int addFactor(ShardingRule &rule, int64_t size, bool canCut = true, std::optional<ReduceKind> reduction = {}) {
  if (size == 1)
    return -1;
  rule.factors.push_back({size, canCut, reduction, false, false});
  return int(rule.factors.size()) - 1;
}

void append(ShardingRule::DimFactors &dim, int factor) {
  if (factor >= 0)
    dim.push_back(factor);
}

/// One operand, one result, partial sums pass through.
ShardingRule emptyView(size_t fromRank, size_t toRank, StringRef text) {
  ShardingRule rule;
  rule.operands.emplace_back(fromRank);
  rule.results.emplace_back(toRank);
  rule.linear = {LinearClause::Sum, {0}};
  rule.text = text.str();
  return rule;
}
} // namespace

ShardingRule elementwiseRule(Operation *op, LinearClause linear) {
  ShardingRule rule;
  ArrayRef<int64_t> result = shapeOf(op->getResult(0).getType());
  SmallVector<int> factors;
  for (int64_t size : result)
    factors.push_back(addFactor(rule, size));
  auto dimsOf = [&](ArrayRef<int64_t> shape) {
    SmallVector<ShardingRule::DimFactors> dims(shape.size());
    for (size_t dim = 0; dim < shape.size(); ++dim)
      if (shape[dim] != 1)
        append(dims[dim], factors[result.size() - shape.size() + dim]);
    return dims;
  };
  for (Type type : op->getOperandTypes())
    rule.operands.push_back(dimsOf(shapeOf(type)));
  rule.results.push_back(dimsOf(result));
  rule.linear = std::move(linear);
  rule.text = "elementwise";
  return rule;
}

namespace {
/// Dims [begin, end) of a shape.
struct Run {
  size_t begin, end;
};

/// The runs of dims between those of size 0, which end them.
SmallVector<Run> runsBetweenZeros(ArrayRef<int64_t> shape) {
  SmallVector<Run> runs;
  size_t begin = 0;
  for (size_t dim = 0; dim <= shape.size(); ++dim)
    if (dim == shape.size() || shape[dim] == 0) {
      runs.push_back({begin, dim});
      begin = dim + 1;
    }
  return runs;
}

/// The dims of one side, each with what is left of it to cover.
struct Cover {
  ArrayRef<int64_t> shape;
  SmallVector<ShardingRule::DimFactors> &factors;
  Run run;
  int64_t left = 1;

  void advance() {
    while (left == 1 && run.begin < run.end)
      left = shape[run.begin++];
  }
  void add(int factor) { append(factors[run.begin - 1], factor); }
  /// The rest of the run, and the 0 that ends it, cannot be cut.
  void finish(ShardingRule &rule) {
    if (left != 1)
      add(addFactor(rule, left, /*canCut=*/false));
    for (size_t dim = run.begin; dim < std::min(run.end + 1, shape.size()); ++dim)
      append(factors[dim], addFactor(rule, shape[dim], /*canCut=*/false));
  }
};

/// Without elements any dims may go together. Those of the n-th run do with those of the n-th as far as they nest, so that
/// a batch stays one.
void addEmptyFactors(ShardingRule &rule, ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  SmallVector<Run> fromRuns = runsBetweenZeros(from), toRuns = runsBetweenZeros(to);
  for (size_t n = 0; n < std::max(fromRuns.size(), toRuns.size()); ++n) {
    Cover a{from, rule.operands[0], n < fromRuns.size() ? fromRuns[n] : Run{from.size(), from.size()}};
    Cover b{to, rule.results[0], n < toRuns.size() ? toRuns[n] : Run{to.size(), to.size()}};
    for (a.advance(), b.advance(); a.left != 1 && b.left != 1; a.advance(), b.advance()) {
      int64_t shared = std::min(a.left, b.left);
      if (a.left % shared || b.left % shared)
        break;
      int factor = addFactor(rule, shared);
      a.add(factor);
      b.add(factor);
      a.left /= shared;
      b.left /= shared;
    }
    a.finish(rule);
    b.finish(rule);
  }
}
} // namespace

ShardingRule viewRule(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  ShardingRule rule = emptyView(from.size(), to.size(), "view");
  auto &operand = rule.operands[0];
  auto &result = rule.results[0];
  if (llvm::is_contained(from, 0)) {
    addEmptyFactors(rule, from, to);
    return rule;
  }
  // `left` and `right` are what remains to be covered of the current dim on each side.
  size_t i = 0, j = 0;
  int64_t left = 1, right = 1;
  while (true) {
    while (left == 1 && i < from.size())
      left = from[i++];
    while (right == 1 && j < to.size())
      right = to[j++];
    if (left == 1 && right == 1)
      return rule;
    int64_t shared = std::min(left, right);
    if (left % shared == 0 && right % shared == 0) {
      int factor = addFactor(rule, shared);
      append(operand[i - 1], factor);
      append(result[j - 1], factor);
      left /= shared;
      right /= shared;
      continue;
    }
    // The factors do not nest: this run of dims, up to where the products meet again, cannot be cut.
    append(operand[i - 1], addFactor(rule, left, /*canCut=*/false));
    append(result[j - 1], addFactor(rule, right, /*canCut=*/false));
    while (left != right) {
      if (left < right) {
        append(operand[i], addFactor(rule, from[i], /*canCut=*/false));
        left *= from[i++];
      } else {
        append(result[j], addFactor(rule, to[j], /*canCut=*/false));
        right *= to[j++];
      }
    }
    left = right = 1;
  }
}

ShardingRule transposeRule(ArrayRef<int64_t> from, ArrayRef<int64_t> permutation) {
  ShardingRule rule = emptyView(from.size(), from.size(), "transpose");
  for (size_t dim = 0; dim < from.size(); ++dim)
    append(rule.operands[0][dim], addFactor(rule, from[dim]));
  for (size_t dim = 0; dim < from.size(); ++dim)
    rule.results[0][dim] = rule.operands[0][permutation[dim]];
  return rule;
}

ShardingRule sliceRule(ArrayRef<int64_t> from, ArrayRef<int64_t> starts, ArrayRef<int64_t> sizes) {
  ShardingRule rule = emptyView(from.size(), from.size(), "slice");
  for (size_t dim = 0; dim < from.size(); ++dim) {
    auto &operand = rule.operands[0][dim];
    auto &result = rule.results[0][dim];
    int64_t size = sizes[dim];
    if (size > 0 && from[dim] % size == 0 && starts[dim] % size == 0) {
      append(operand, addFactor(rule, from[dim] / size, /*canCut=*/false)); // which part
      int rest = addFactor(rule, size);
      append(operand, rest);
      append(result, rest);
    } else {
      append(operand, addFactor(rule, from[dim], /*canCut=*/false));
      append(result, addFactor(rule, size, /*canCut=*/false));
    }
  }
  return rule;
}

ShardingRule concatRule(Operation *op, int64_t axis) {
  ArrayRef<int64_t> result = shapeOf(op->getResult(0).getType());
  ShardingRule rule;
  rule.text = "concat";
  SmallVector<int> factors;
  for (auto [dim, size] : llvm::enumerate(result))
    factors.push_back(int64_t(dim) == axis ? -1 : addFactor(rule, size));
  int64_t part = op->getNumOperands() ? shapeOf(op->getOperand(0).getType())[axis] : 0;
  bool equalParts = llvm::all_of(op->getOperandTypes(), [&](Type type) { return shapeOf(type)[axis] == part; });
  int rest = equalParts ? addFactor(rule, part) : -1;
  for (auto [index, type] : llvm::enumerate(op->getOperandTypes())) {
    auto &dims = rule.operands.emplace_back(result.size());
    for (size_t dim = 0; dim < result.size(); ++dim)
      append(dims[dim], int64_t(dim) != axis ? factors[dim]
                        : equalParts         ? rest
                                             : addFactor(rule, shapeOf(type)[axis], /*canCut=*/false));
    rule.linear.operands.push_back(int(index));
  }
  rule.linear.kind = LinearClause::Sum;
  auto &dims = rule.results.emplace_back(result.size());
  for (size_t dim = 0; dim < result.size(); ++dim) {
    if (int64_t(dim) != axis) {
      append(dims[dim], factors[dim]);
      continue;
    }
    append(dims[dim], addFactor(rule, equalParts ? int64_t(op->getNumOperands()) : result[dim], /*canCut=*/false));
    append(dims[dim], rest);
  }
  return rule;
}

ShardingRule axisLocalRule(Operation *op, ArrayRef<int64_t> axes) {
  ArrayRef<int64_t> from = shapeOf(op->getOperand(0).getType()), to = shapeOf(op->getResult(0).getType());
  ShardingRule rule = emptyView(from.size(), to.size(), "axis-local");
  rule.linear = {};
  for (size_t dim = 0; dim < from.size(); ++dim) {
    bool fixed = llvm::is_contained(axes, int64_t(dim));
    int factor = addFactor(rule, from[dim], !fixed);
    append(rule.operands[0][dim], factor);
    append(rule.results[0][dim], fixed && from[dim] != to[dim] ? addFactor(rule, to[dim], /*canCut=*/false) : factor);
  }
  for (size_t extra = 1; extra < op->getNumOperands(); ++extra)
    rule.operands.emplace_back(shapeOf(op->getOperand(extra).getType()).size());
  return rule;
}

ShardingRule reduceRule(ArrayRef<int64_t> from, ArrayRef<int64_t> axes, ReduceKind kind) {
  ShardingRule rule = emptyView(from.size(), from.size(), "reduce");
  if (kind != ReduceKind::Sum)
    rule.linear = {};
  for (size_t dim = 0; dim < from.size(); ++dim) {
    bool reduced = llvm::is_contained(axes, int64_t(dim));
    int factor = addFactor(rule, from[dim], /*canCut=*/true, reduced ? std::optional(kind) : std::nullopt);
    append(rule.operands[0][dim], factor);
    if (!reduced)
      append(rule.results[0][dim], factor);
  }
  return rule;
}

} // namespace hpc
