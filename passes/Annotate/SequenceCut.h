// Seeds that cut the positions of a program over axes whose ranks have other rows. Every activation is seeded, not inputs alone:
// a mask of scores has positions twice, and an op could take the other ones.
#pragma once

#include "passes/Annotate/SequenceDims.h"

namespace hpc {

/// Cuts the positions of inputs and activations over `axes`, outermost first, outside of what seeds cut there already. What the user
/// keeps whole stays so. Without positions nothing is cut. `isMeant`: the values that are; null: all.
void cutSequence(func::FuncOp function, const SequenceDims &sequence, ArrayRef<std::string> axes,
                 llvm::function_ref<bool(Value)> isMeant = nullptr);

/// An op that mixes positions of activations, beside attention; null where there is none. Not one that counts positions (a sum along a
/// mask), nor one that only makes keys, which attention needs whole anyway (keys of earlier steps before the new ones).
Operation *findMixer(func::FuncOp function, const SequenceDims &sequence);

/// The same around attention, which gets all positions and a part of the heads over `axes` (Jacobs et al. 2023). Before
/// cutSequence, which then leaves scores and their masks whole.
void exchangeHeads(func::FuncOp function, const SequenceDims &sequence, const dist::Mesh &mesh, ArrayRef<std::string> axes);

} // namespace hpc
