// The outer choices: every way to spread a step over the devices. What a flag or the sidecar decides is the same in all of them.
#pragma once

#include "passes/Options.h"

#include <set>

namespace hpc::search {

/// One way. Equal fields lead to equal plans.
struct Candidate {
  int64_t dp = 1, cp = 1, tp = 1, pp = 1;
  int64_t microBatches = 1, chunks = 1, zero = 0;
  std::string layout = "1d";     ///< of tp's ranks, as Options::layout has it: 1d+sp
  std::string schedule;          ///< "" = what fits the programs
  std::string recompute = "none";
  std::string cpMode = "gather";
  std::string split;             ///< layers of each part as --pp-split has them: "3,3,2"; "" = balanced
  std::string sidecar;           ///< text of one that cuts the weights (LayoutChoice.h); "" = the layout itself does

  int64_t ranks() const { return dp * cp * tp * pp; }
  /// `from` with these choices.
  Options options(const Options &from) const;
  /// The flags of hpc-opt that lead here: "--dp=2 --tp=2 --zero=1". Degrees of 1 and defaults are left out; a sidecar is named --spec=FILE.
  std::string flags() const;
};

/// From what the candidates are made.
struct Space {
  Options options;               ///< its values hold where `decided` names their flag
  std::set<std::string> decided; ///< flags without dashes: "dp", "pp-schedule"; of tp-layout and sp either decides the layout
  int64_t devices = 1;
  int64_t batch = 1;             ///< sequences (rows) of the whole step
  int64_t positions = 1;         ///< of a sequence: no more ranks of cp than this
  int64_t products = 1;          ///< of the forward program: no more stages and chunks than this
  int64_t blocks = 0;            ///< equal blocks that the program repeats; 0 = none found

  bool isDecided(const std::string &flag) const { return decided.count(flag) != 0; }
};

/// Candidates that differ in chunks, schedule, ZeRO and recomputation alone. They have the rest in common, so one bound holds for all of them.
struct Family {
  Candidate fastest; ///< no member takes less time by a bound (Estimate.h)
  Candidate thinnest; ///< none takes less memory by one
  int64_t members = 0;
};

/// All of them, in one order: few axes first. dp and micro-batches that the search chooses divide the batch. A pipeline that it chooses has no
/// more parts than the program has products; with several chunks, its parts have equally many blocks and its micro-batches
/// are a multiple of its stages.
std::vector<Family> familiesOf(const Space &space);
/// The members of one, policies of recomputation next to each other.
std::vector<Candidate> membersOf(const Space &space, const Family &family);

} // namespace hpc::search
