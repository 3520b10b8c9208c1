// The strategies of an op, from its sharding rule: each free axis cuts one factor inside of what cuts it already, passes a partial sum on, or
// does nothing.
#pragma once

#include "compiler/Dialect/Dist/FactorShardings.h"
#include "compiler/Dialect/NN/Dependence.h"
#include "compiler/MLIR.h"

#include <set>

namespace hpc::search {

class LayoutStrategies {
public:
  /// `propagated`: its factors are cut over other axes alone. Arguments outlive this.
  LayoutStrategies(func::FuncOp propagated, const dist::Mesh &mesh, const std::vector<std::string> &free, const nn::Dependences &dependences)
      : function(propagated), mesh(mesh), free(free), dependences(dependences) {
    findPieces();
  }
  /// In program order: an op may pass what the ops before may give. The first one does nothing with the free axes. An op on constants has it alone,
  /// since its readers slice what is whole everywhere.
  std::vector<dist::OpSharding> of(Operation *op);

private:
  /// Digits of a dim along which some op could cut it: (inner, size), dim = outer * size * inner.
  using Pieces = std::set<std::pair<int64_t, int64_t>>;

  void findPieces();
  std::vector<Pieces> piecesOf(Operation *op, const ShardingRule &rule);

  func::FuncOp function;
  const dist::Mesh &mesh;
  const std::vector<std::string> &free;
  const nn::Dependences &dependences;
  llvm::DenseMap<Value, std::vector<Pieces>> pieces;
  llvm::DenseMap<Value, std::set<std::string>> partial; ///< axes over which some strategy gives terms of a sum
};

} // namespace hpc::search
