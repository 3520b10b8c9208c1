// Passes facts about a loop from a nest to LLVM: MLIR's own lowering moves the attribute from the loop to its last
// branch, where translateKernels turns it into LLVM's metadata.
#pragma once

namespace hpc::kernels {

/// Of an scf.for: an LLVM::LoopAnnotationAttr for the loop that it becomes.
constexpr const char *loopAnnotationName = "llvm.loop_annotation";

} // namespace hpc::kernels
