// The `dist` dialect: attributes for mesh and sharding, and access to them on types and modules.
#pragma once

#include "compiler/Dialect/Dist/Sharding.h"
#include "compiler/Dialect/Dist/ShardingSeed.h"
#include "compiler/Interfaces/Collective.h"
#include "compiler/Interfaces/DiscardableAttributes.h"
#include "compiler/Interfaces/ShardingRule.h"
#include "compiler/Interfaces/Structure.h"
#include "compiler/MLIR.h"

namespace llvm {
inline hash_code hash_value(const std::vector<std::string> &strings) {
  return hash_combine_range(strings.begin(), strings.end());
}
} // namespace llvm

namespace hpc::dist {
llvm::hash_code hash_value(const Mesh &mesh);
llvm::hash_code hash_value(const Sharding &sharding);
llvm::hash_code hash_value(const Seed &seed);

using AxisNames = std::vector<std::string>;
/// Those that a collective names.
AxisNames axesOf(ArrayAttr names);
inline AxisNames axesOf(StringAttr name) { return {name.str()}; }
} // namespace hpc::dist

#include "compiler/Dialect/Dist/DistDialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "compiler/Dialect/Dist/DistAttributes.h.inc"
#define GET_OP_CLASSES
#include "compiler/Dialect/Dist/DistOps.h.inc"

namespace hpc::dist {

/// Name of the module attribute that holds the mesh.
constexpr const char *meshAttrName = "dist.mesh";
/// A SeedAttr or, for a default layout, a ShardingAttr, on an argument or an op (an array of them, one per result, where
/// it has several). Read by seedOf, written by setSeed.
constexpr const char *seedAttrName = "dist.seed";
/// A SeedAttr on an op: the cut in which readers want its first result, which the op itself may compute otherwise. The
/// collective between them is a reduce-scatter where the op sums over the same axes.
constexpr const char *readSeedAttrName = "dist.read_seed";

/// The mesh of the module around `op`; an empty mesh when it has none yet.
Mesh meshOf(Operation *op);
/// The seed of a value, if it has one.
std::optional<Seed> seedOf(Value value);
void setSeed(Value value, const Seed &seed);
/// The seed of a value's readers, if they have one.
std::optional<Seed> readSeedOf(Value value);
/// `value` is an op's first result.
void setReadSeed(Value value, const Seed &seed);
/// Takes the seeds off all ops and arguments of a function.
void removeSeeds(func::FuncOp function);
/// The sharding of a value's type, null before propagation.
ShardingAttr shardingAttrOf(Type type);
inline ShardingAttr shardingAttrOf(Value value) { return shardingAttrOf(value.getType()); }
/// The sharding of a value; replicated when it has none.
Sharding shardingOf(Value value);
/// The type with another encoding, same shape.
RankedTensorType withSharding(RankedTensorType type, const Sharding &sharding);
/// The type of the local box of a globally shaped type, keeping its encoding.
RankedTensorType localType(RankedTensorType global, const Mesh &mesh);
/// The global type of a local one.
RankedTensorType globalType(RankedTensorType local);
RankedTensorType withoutSharding(RankedTensorType type);

} // namespace hpc::dist
