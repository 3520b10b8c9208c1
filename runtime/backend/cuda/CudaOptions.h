// The user's options for running a plan on GPUs.
#pragma once

#include <functional>
#include <string>

namespace hpc::cuda {

/// Epilogues (plan::Epilogue) that GEMMs of the library compute in place of kernels.
enum class Epilogues {
  None,
  Faithful, ///< a bias; with GELU where the result has 16 bits
  All,      ///< cuBLASLt's relu turns NaN into 0, and the error of its tanh is not documented
};

struct CudaOptions {
  int ranksPerGpu = 1;       ///< > 1: they share its memory and take turns
  bool tf32 = false;         ///< see Products::create
  bool syncEachOp = false;   ///< wait after each instruction, so that an error is reported where it happens
  bool cudaGraph = true;     ///< see StepGraph
  bool inRankOrder = false;  ///< reductions by NCCL give the bits that the host's do, and results repeat
  bool cudnn = true;         ///< see Attentions
  Epilogues epilogues = Epilogues::Faithful;
  std::string libraryFolder; ///< of driver and libraries; empty: the loader's own rules
  std::function<void(const std::string &)> note; ///< receives notes; may be null. A backend sends each text once
};

} // namespace hpc::cuda
