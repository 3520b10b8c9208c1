// What propagation notes on ops, and what ties a program to the one it was before partition and explains it.
// Each attribute is written and read here alone; its name is public for messages, which say what a dump shows.
#pragma once

#include "compiler/Dialect/Dist/FactorShardings.h"

namespace hpc {

// ---- values -------------------------------------------------------------------------------------

constexpr const char *valueIdAttrName = "hpc.id"; ///< i64, unique
constexpr const char *movedIdAttrName = "hpc.id_of";

/// Which value of the propagated program an op's result is. hpc-propagate-shardings numbers every op of @main that has
/// results. The op that holds the same value in the partitioned program has the same number (its global tensor is
/// dist::globalType of its type; partial axes sum up); ops that exist in one of the programs only have none. Function
/// arguments correspond by position.
struct ValueIds {
  std::optional<int64_t> made;  ///< of the op that computes it
  std::optional<int64_t> moved; ///< of a collective, a transfer, a fill_tail: of the value that it passes on
  std::optional<int64_t> held() const { return made ? made : moved; }
};
/// None for null.
ValueIds valueIdsOf(Operation *op);
/// Takes away what `ids` does not have.
void setValueIds(Operation *op, const ValueIds &ids);

// ---- attributes that became local ---------------------------------------------------------------

constexpr const char *globalAttrsName = "hpc.global"; ///< a dictionary

/// Notes on `local` the attributes of `global` that it has otherwise (a slice's sizes).
void noteGlobalAttributes(Operation *global, Operation *local);
/// The attributes of the global op that a local one was made from, by which the verifier derives it again.
NamedAttrList globalAttributes(Operation *local);

// ---- decisions of propagation -------------------------------------------------------------------

constexpr const char *factorsAttrName = "dist.factors"; ///< #dist.sharding whose dims are the factors of the op's rule

/// How the factors of an op's rule are cut: from propagate to hpc-insert-reshards.
std::optional<dist::FactorShardings> factorsOf(Operation *op);
void setFactors(Operation *op, const dist::FactorShardings &factors);
void removeFactors(Operation *op);

constexpr const char *originAttrName = "dist.origin"; ///< {axis = text}

/// Which seed brought an axis to an op ("the sidecar's cut of wte.weight"), for --explain: from propagate to
/// hpc-localize.
using CutOrigins = std::map<std::string, std::string>;
CutOrigins originsOf(Operation *op); ///< none for null
void setOrigins(Operation *op, const CutOrigins &origins);

} // namespace hpc
