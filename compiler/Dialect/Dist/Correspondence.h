// Attributes that tie a program to what it was before partition, and explain it. Names only; who writes and reads them
// is said here.
#pragma once

namespace hpc {

/// i64, unique: set by hpc-propagate-shardings on every op of @main that has results. The op that holds the same value
/// in the partitioned program has the same id (its global tensor is dist::globalType of its type; partial axes sum up).
/// Ops that exist in one of the programs only have none. Function arguments correspond by position.
constexpr const char *valueIdAttrName = "hpc.id";
/// i64: on collectives and fill_tails; the id of the value that is moved.
constexpr const char *movedIdAttrName = "hpc.id_of";
/// A dictionary: on ops whose attributes became local (slice), the global ones, by which the verifier derives the op
/// again.
constexpr const char *globalAttrsName = "hpc.global";

/// #dist.sharding whose dims are the factors of the op's rule: from propagate to hpc-insert-reshards.
constexpr const char *factorsAttrName = "dist.factors";
/// {axis = text}: which seed brought an axis to the op, for --explain; as long as dist.factors.
constexpr const char *originAttrName = "dist.origin";
} // namespace hpc
