// Who computes an op once kernels are made, on a target. One table answers for all: hpc-decompose-composites keeps the
// composites that somebody claims, hpc-fuse-regions leaves outside what has a provider, hpc-verify-kernels and lower accept
// nothing else.
#pragma once

#include "compiler/MLIR.h"

namespace hpc {

enum class Provider : uint8_t {
  None,       ///< nobody as it stands: a composite is decomposed, any other op goes into a region
  Library,    ///< a call of the backend's library
  Generated,  ///< a region with code of its own
  Region,     ///< a composite, or what runs along rows like one, that generated code computes whole, inside a region
  Storage,    ///< a buffer that is filled before anything runs
  Alias,      ///< the buffer of its operand, seen as another shape or extent
  Collective, ///< the plan's collectives on contiguous blocks
  Time,       ///< a buffer of the step that micro-batches add to
  Structure,  ///< holds ops, ends blocks, joins stages
};

/// `targets`: what kernels are generated for, as targetOf (ModuleAttributes.h) names it. A target that no line names gets
/// what holds everywhere. One program serves several targets, so what they do not agree on has no provider; a device
/// claims at least what the host claims, and the host's part of a plan does not depend on what else it is made for, but
/// for windows: the host's products read them from the image (ImplicitWindows.h), a device's from memory.
Provider providerOf(Operation *op, StringRef targets);

/// On the targets of the module that the op is in.
Provider providerOf(Operation *op);

/// Whether the op's result lies in the buffer of its operand, which holds on every target.
bool isBufferAlias(Operation *op);
/// The value whose buffer `value` lies in.
Value aliasRoot(Value value);

} // namespace hpc
