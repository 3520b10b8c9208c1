// Seeds that cut the positions of a program over axes whose ranks have other rows. Every activation is seeded, not inputs alone:
// a mask of scores has positions twice, and an op could take the other ones.
#pragma once

#include "passes/Annotate/SequenceDims.h"

namespace hpc {

/// Cuts the positions of inputs and activations over `axes`, outermost first, outside of what seeds cut there already. What the user
/// keeps whole stays so. Without positions nothing is cut.
void cutSequence(func::FuncOp function, const SequenceDims &sequence, ArrayRef<std::string> axes);

/// The same around attention, which gets all positions and a part of the heads over `axes` (Jacobs et al. 2023). Before
/// cutSequence, which then leaves scores and their masks whole.
void exchangeHeads(func::FuncOp function, const SequenceDims &sequence, const dist::Mesh &mesh, ArrayRef<std::string> axes);

} // namespace hpc
