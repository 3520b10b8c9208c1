// Loads of inputs and stores of outputs that need not copy: where a buffer holds a whole port and nothing else, it can be
// the caller's array itself.
#pragma once

#include "runtime/core/Slice.h"

namespace hpc {

/// A load or a store of a rank.
struct DirectPort {
  int64_t program, instruction; ///< indices into the stage's programs and the program's instructions
  int32_t buffer, port;
  bool isOutput;
};

/// A buffer of a program that is run once a step, and either an input's that nothing else writes, or an output's that
/// nothing writes behind its store. `storesOutputs`: this process has the arrays of the outputs.
std::vector<DirectPort> findDirectPorts(const plan::Plan &plan, const plan::Stage &stage, Place place,
                                        bool storesOutputs);

} // namespace hpc
