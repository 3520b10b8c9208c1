// Equal blocks of a model that follow each other, and the same model with fewer of them: what a block takes in memory and time is
// found on a few. Equal means structure: ops, types, attributes and edges; names and the numbers of weights do not count, but the
// user's rules about a name do.
#pragma once

#include "compiler/MLIR.h"
#include "passes/Options.h"

namespace hpc {

/// Blocks of which each reads what the one before it makes. Ops at equal positions correspond. The ops of a block include the
/// parameters, constants and masks that it alone reads.
struct BlockChain {
  std::vector<SmallVector<Operation *>> blocks;           ///< at least two
  std::vector<SmallVector<unsigned>> arguments, results;  ///< of @main, that are a block's own: by block, then by position
  size_t size() const { return blocks.size(); }
};

/// The chains of a program that has been through phase raise and no further, in program order; none where nothing repeats.
/// `options`: for their patterns of names.
std::vector<BlockChain> findRepeatedBlocks(ModuleOp raised, const Options &options);

struct ShortenedModel {
  OwningOpRef<ModuleOp> module;
  std::vector<std::vector<SmallVector<Operation *>>> blocks; ///< of it, by chain
};

/// The program with the first `counts[i]` blocks (at least 1) of each chain; what reads the last block of a chain reads the last
/// one that is left. Rules of a sidecar that name what is gone are none any more; its rules of stages are left out.
ShortenedModel shortened(ModuleOp raised, ArrayRef<BlockChain> chains, ArrayRef<int64_t> counts);

/// By name of a parameter of a block: the name of the corresponding one in the program that `shortened` makes of `counts`. The first
/// block corresponds to the first, the last to the last, those between to the last but one (to the last of fewer than three).
std::map<std::string, std::string> shortenedNames(ArrayRef<BlockChain> chains, ArrayRef<int64_t> counts);

} // namespace hpc
