// Lower bounds of all plans of a candidate, from the serial program alone: no phase is run for it.
#pragma once

#include "compiler/MLIR.h"
#include "passes/Search/Candidates.h"
#include "runtime/cost/Machine.h"

namespace hpc::search {

/// A step of the serial program.
struct Work {
  double flops = 0;        ///< of products
  double seconds = 0;      ///< of these on one rank, at the best share of the peak of their types
  int64_t weights = 0;     ///< bytes of trained parameters, each name once
  int64_t states = 0;      ///< bytes of what a step leaves to the next, beside those
  int64_t ops = 0;
  int64_t matrices = 0;    ///< trained parameters of rank 2
  double width = 0;        ///< the root of their mean number of elements: of the order of an activation's channels
  bool userCuts = false;   ///< the sidecar cuts parameters or tensors, over any axis
};

/// `program`: after phase precision. `narrows`: products of f32 may be computed in 16 bits.
Work workOf(ModuleOp program, const cost::Machine &machine, bool narrows = false);

/// Bytes of the fullest rank: trained parameters and states, as thin as the candidate's axes cut them. More ranks or a higher level of
/// ZeRO never raise it.
int64_t leastMemory(const Candidate &candidate, const Work &work);
/// Seconds of a step: all products at the peak, over all ranks, and the gradients that a rank of data parallelism receives if nothing hides
/// them but these products. More ranks never raise the first.
double leastSeconds(const Candidate &candidate, const Work &work, const cost::Machine &machine);

/// A guess at the seconds of a step, in which order candidates are looked at: it decides nothing else. The products, the pipeline's bubble, and as much traffic as
/// a transformer of this width has with Megatron's layout (Narayanan et al. 2021), in parts as unequal as blocks leave them; ten times as much where activations do not fit.
double guessSeconds(const Candidate &candidate, const Work &work, const cost::Machine &machine, const Space &space);

} // namespace hpc::search
