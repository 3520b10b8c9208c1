// How a nest tells LLVM what it knows of a loop: MLIR's own lowering takes the attribute along from the loop to its last
// branch, where translateKernels makes it LLVM's metadata.
#pragma once

namespace hpc::kernels {

/// Of an scf.for: an LLVM::LoopAnnotationAttr for the loop that it becomes.
constexpr const char *loopAnnotationName = "llvm.loop_annotation";

} // namespace hpc::kernels
