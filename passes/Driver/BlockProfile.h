// Time and memory of a model with repeated blocks, from models with two, three and four of them: each is compiled without code like any other
// candidate (Trial.h), and a block is the difference.
#pragma once

#include "passes/Driver/RepeatedBlocks.h"
#include "passes/Driver/Trial.h"

namespace hpc {

/// The share of a block, or of the part before or after all blocks, in its stage: seconds and bytes of a rank.
struct BlockShare {
  cost::StageSeconds seconds;
  int64_t weight = 0, state = 0, step = 0;
  int64_t kept = 0; ///< of each micro-batch between its first and its last program
  int64_t temp = 0; ///< of one program; without a pipeline with what its gradients wait for, in a pipeline not of blocks

  void add(const BlockShare &other, int64_t times = 1);
};

/// For one choice of all degrees but pp's, of layout, ZeRO, recompute, dtype.
struct BlockProfile {
  std::vector<int64_t> blocks;   ///< in the whole model, by chain
  std::vector<BlockShare> block; ///< one of them, by chain
  /// Beside the blocks; without a pipeline `after` has both.
  BlockShare before, after;
  BlockShare between; ///< beside the blocks of a part of a pipeline that is neither the first nor the last: what it receives and sends
  int64_t crossing = 0;        ///< bytes that a rank sends to the next stage for one micro-batch
  double crossingSeconds = 0;  ///< of that message

  /// The whole model as one stage.
  BlockShare whole() const;
};

/// The profiles of one program. Threads may ask at the same time, where the context allows it.
class BlockProfiler {
public:
  /// `raised` has been through phase raise and no further, and stays as it is; `options`: for their patterns of names.
  BlockProfiler(ModuleOp raised, const Options &options);
  /// False: nothing repeats (at least four times), and the program is its own profile.
  bool repeats() const { return !chains.empty(); }
  ArrayRef<BlockChain> found() const { return chains; }
  /// Operations of the blocks as phase stage cuts the whole model, which it balances; the first and the last include what is beside all blocks. Empty where
  /// these are not the blocks of the chains, or the user's rules cut them.
  ArrayRef<double> unitCosts() const { return units; }

  /// With options.stages() > 1 that of a pipeline: of stages that exchange messages. --recompute=auto keeps at most `options.budgets` (one number, for each
  /// stage of the programs that are compared; none: all that it likes). Errors: as Trials::run.
  Expected<BlockProfile> profile(const Options &options);

private:
  /// A program with few blocks.
  struct Short {
    OwningOpRef<ModuleOp> module;
    std::unique_ptr<Trials> trials;
    size_t units = 0; ///< blocks as --pp-split counts them
    std::vector<std::pair<size_t, size_t>> unitsBefore; ///< by chain: before its last block but one, and before its last
  };
  void addShort(ModuleOp raised, ArrayRef<int64_t> counts);
  Expected<Trial> tryShort(const Short &model, const Options &options);
  Expected<BlockProfile> ofOneStage(const Options &options);
  Expected<BlockProfile> ofPipeline(const Options &options);

  std::vector<BlockChain> chains;
  std::vector<double> units;
  std::vector<Short> shorts; ///< with two blocks of each chain; then by chain with three of it; then by chain with four
};

} // namespace hpc
