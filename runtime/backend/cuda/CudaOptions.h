// What the user may say about how a plan runs on GPUs.
#pragma once

#include <functional>
#include <string>

namespace hpc::cuda {

/// Which epilogues products take over from kernels (plan::Epilogue).
enum class Epilogues {
  None,
  Faithful, ///< a bias; with GELU where the result has 16 bits
  All,      ///< cuBLASLt's relu makes 0 of NaN, and nobody says how exact its tanh is
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
  std::function<void(const std::string &)> note; ///< told what is no error; may be null. A backend says each text once
};

} // namespace hpc::cuda
