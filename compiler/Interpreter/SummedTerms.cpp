// Terms of sums by the op's sharding rule: what is summed are its factors that results lack.
#include "compiler/Interpreter/SummedTerms.h"

#include "compiler/Interpreter/Evaluators.h"

#include <cmath>

namespace hpc::interpreter {

namespace {
using Factors = SmallVector<int>;

/// The loops over a value, from outer to inner.
Factors loopsOf(ArrayRef<ShardingRule::DimFactors> dims) {
  Factors loops;
  for (const ShardingRule::DimFactors &dim : dims)
    llvm::append_range(loops, dim);
  return loops;
}
SmallVector<int64_t> sizesOf(const ShardingRule &rule, const Factors &loops) {
  SmallVector<int64_t> sizes;
  for (int factor : loops)
    sizes.push_back(rule.factors[factor].size);
  return sizes;
}

/// An operand's norms over what results lack, by the loops that they have.
struct Norms {
  Factors loops;
  std::vector<double> values;

  /// Strides in `values` along other loops: 0 along those that it has not.
  SmallVector<int64_t> stridesAlong(const ShardingRule &rule, const Factors &others) const {
    SmallVector<int64_t> own = stridesOf(sizesOf(rule, loops)), strides;
    for (int factor : others) {
      auto found = llvm::find(loops, factor);
      strides.push_back(found == loops.end() ? 0 : own[found - loops.begin()]);
    }
    return strides;
  }
};

Norms normsOf(const Tensor &operand, const ShardingRule &rule, const Factors &loops, const Factors &kept) {
  Norms norms;
  for (int factor : loops)
    if (llvm::is_contained(kept, factor))
      norms.loops.push_back(factor);
  norms.values.assign(elementCount(sizesOf(rule, norms.loops)), 0);
  forEachElement<1>(sizesOf(rule, loops), {norms.stridesAlong(rule, loops)}, {0},
                    [&](int64_t i, const std::array<int64_t, 1> &at) {
                      norms.values[at[0]] += operand.number(i) * operand.number(i);
                    });
  for (double &value : norms.values)
    value = std::sqrt(value);
  return norms;
}

SummedTerms termsOfProduct(const ShardingRule &rule, Operands operands, unsigned result) {
  SummedTerms terms;
  Factors loops = loopsOf(rule.results[result]), summed;
  Norms norms[2];
  for (size_t i = 0; i < 2; ++i) {
    Factors own = loopsOf(rule.operands[i]);
    assert(elementCount(sizesOf(rule, own)) == operands[i]->size() && "a rule covers its operands");
    norms[i] = normsOf(*operands[i], rule, own, loops);
    if (i == 0)
      for (int factor : own)
        if (!llvm::is_contained(loops, factor))
          terms.count *= rule.factors[factor].size;
  }
  terms.magnitudes.resize(elementCount(sizesOf(rule, loops)));
  forEachElement<2>(sizesOf(rule, loops), {norms[0].stridesAlong(rule, loops), norms[1].stridesAlong(rule, loops)},
                    {0, 0}, [&](int64_t i, const std::array<int64_t, 2> &at) {
                      terms.magnitudes[i] = norms[0].values[at[0]] * norms[1].values[at[1]];
                    });
  return terms;
}
} // namespace

Expected<SummedTerms> summedTerms(Operation *op, Operands operands, unsigned result) {
  SummedTerms terms;
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  std::optional<Access> access = accessOf(op);
  const bool addsRows = access == Access::Lookup && effortOf(op) == Effort::Expensive;
  if (!ruled || (access != Access::Product && access != Access::Combine && !addsRows))
    return terms;
  ShardingRule rule = ruled.getShardingRule();
  if (access == Access::Product)
    return termsOfProduct(rule, operands, result);
  for (const ShardingFactor &factor : rule.factors) {
    if (factor.reduction == ReduceKind::Max || factor.reduction == ReduceKind::Min)
      return terms; // rounds nothing
    if (factor.reduction || factor.isInternal || !factor.canCut)
      terms.count *= factor.size;
  }
  if (terms.count <= 1)
    return terms;
  std::vector<Tensor> magnitudes;
  SmallVector<const Tensor *> inputs;
  for (const Tensor *operand : operands)
    magnitudes.push_back(*operand);
  for (Tensor &tensor : magnitudes) {
    for (double &value : tensor.floats)
      value = std::abs(value);
    inputs.push_back(&tensor);
  }
  Results results = evaluateOp(op, inputs, {.doublePrecision = true});
  if (!results.ok())
    return results.status();
  terms.magnitudes = std::move((*results)[result].floats);
  return terms;
}

} // namespace hpc::interpreter
