// The table of strategies, and what the user's seeds leave to them. A weight that is made of a cut parameter may be cut,
// since its own cut is not known yet; one made of a parameter that the user keeps whole may not.
#include "passes/Annotate/LayoutStrategy.h"

namespace hpc {

std::vector<LayoutSeed> oneDimensional(const LayoutProgram &program);

ArrayRef<LayoutStrategy> layoutStrategies() {
  static const LayoutStrategy strategies[] = {
      {"1d", oneDimensional},
  };
  return strategies;
}

dist::DimSharding dimSharding(int64_t size, const DimCut &cut) {
  int64_t outer = size / cut.piece.size / cut.piece.inner;
  dist::DimSharding dim;
  if (outer != 1)
    dim.push_back({outer, {}});
  dim.push_back({cut.piece.size, cut.axes});
  if (cut.piece.inner != 1)
    dim.push_back({cut.piece.inner, {}});
  return dim;
}

int64_t LayoutProgram::degree() const {
  int64_t degree = 1;
  for (const std::string &axis : axes)
    degree *= mesh.size(axis);
  return degree;
}

SmallVector<dist::Seed> LayoutProgram::userSeeds(Value weight) const {
  SmallVector<dist::Seed> seeds;
  llvm::SetVector<Value> open;
  open.insert(weight);
  for (size_t next = 0; next < open.size(); ++next)
    if (Operation *op = open[next].getDefiningOp(); op && origins.lookup(open[next]).isWeight()) {
      open.insert(op->operand_begin(), op->operand_end());
      if (std::optional<dist::Seed> seed = dist::seedOf(open[next]); seed && seed->isBinding())
        seeds.push_back(*seed);
    }
  return seeds;
}

bool LayoutProgram::mayCut(Value weight, const DimCut &cut) const {
  if (std::optional<dist::Seed> seed = dist::seedOf(weight); seed && seed->isBinding())
    return dist::normalize(seed->sharding.dims[cut.dim], mesh) ==
           dist::normalize(dimSharding(nn::shapeOf(weight)[cut.dim], cut), mesh);
  return llvm::none_of(userSeeds(weight), [](const dist::Seed &seed) { return dist::isReplicated(seed.sharding); });
}

} // namespace hpc
