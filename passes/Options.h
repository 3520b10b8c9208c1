// What the user asks of a compilation, as plain data. It travels in the module attribute `hpc.options`, so that a
// dumped phase can be continued to the same plan.
#pragma once

#include "compiler/Dialect/Dist/MeshDegrees.h"
#include "compiler/ModuleMachine.h"
#include "runtime/base/Status.h"

namespace hpc {

struct Options {
  dist::Mesh degrees = dist::degreesOf();
  int64_t stages() const { return degrees.sizeOf(dist::AxisRole::Pipeline); }
  int64_t microBatches() const { return degrees.sizeOf(dist::AxisRole::Time); }
  /// Name of the symbolic dim of the inputs that is the batch; "" = "batch", else the one that starts so, else dim 0.
  std::string batchDim;
  /// How the ranks of the tensor axis are arranged (passes/Annotate/LayoutStrategy.h): 1d, 2d, 2d:2x3.
  std::string tpLayout = "1d";
  /// Whether ranks of the tensor axis share the sequence between products (Korthikanti et al. 2022); with the layout 1d.
  bool sp = false;
  /// The name of the layout strategy: 1d+sp with `sp`.
  std::string layout() const { return sp ? tpLayout + "+sp" : tpLayout; }
  void setLayout(StringRef name) {
    sp = name.consume_back("+sp");
    tpLayout = name.str();
  }
  /// How attention meets keys of other ranks of the sequence axis: gather, ring or ulysses.
  std::string cpMode = "gather";
  /// Which rows a rank of the sequence axis has: zigzag (two intervals, of equal work where attention is causal) or plain.
  std::string cpBalance = "zigzag";
  /// Whether products whose operands are gathered take them panel by panel (hpc-panel-products).
  bool panels = false;
  /// uniform, balanced, or the number of blocks of every part (a stage has ppChunks of them): "1,2,1".
  std::string ppSplit = "balanced";
  int64_t ppChunks = 1;
  /// Name of a schedule or path of a file; "" = what fits the programs.
  std::string ppSchedule;
  /// What is minimised: causal-lm, classification, mse, output:NAME, or auto (by the rank of the graph's output); "" =
  /// nothing, a plan for inference.
  std::string loss;
  bool trains() const { return !loss.empty(); }
  /// Positions that a sequence of a plan for generation has at most; 0 = no generation. The sequence of the inputs has this size.
  int64_t maxLength = 0;
  /// Positions that one step computes, of which maxLength is a multiple: a chunk of the prompt, or 1 in decoding.
  int64_t stepRows = 1;
  /// stepRows of prefill. Caches of windows hold as many more rows, in all entries.
  int64_t chunkRows = 1;
  bool generates() const { return maxLength > 0; }
  /// Parameters that are not trained: patterns of names (compiler/Sidecar/Sidecar.h, matchesName) with commas between.
  std::string freeze;
  /// How they are trained: the options of hpc-clip-gradients and hpc-append-optimizer (passes/Train/Passes.td).
  std::string optimizer = "adamw", decay = "all";
  double momentum = 0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weightDecay = 0, clip = 0;
  bool nesterov = false;
  int64_t zero = 0; ///< level of hpc-annotate-zero
  std::string recompute = "none"; ///< policy of hpc-recompute
  int64_t memory = 0;             ///< bytes that a rank may take on its device; 0 = unlimited
  std::string machine; ///< that the plan is made for: cost::machineText; "" = the default of runtime/cost/Machine.h
  /// To what operands of products are rounded: model (not at all), bf16 or fp16.
  std::string dtype = "model";
  bool narrowsProducts() const { return dtype != "model"; }
  /// In what weights of products are held: float (as the model has them) or int8.
  std::string weights = "float";
  bool quantizesWeights() const { return weights != "float"; }
  /// f16 ends where f32's small gradients begin.
  bool scalesLoss() const { return dtype == "fp16"; }
  /// All layouts give the same bits (hpc-exact-sums).
  bool deterministic = false;
  /// What kernels are generated for: host, cuda, or host,cuda.
  std::string target = "host";

  // The attribute does not have the fields below: tries of one compilation differ in them, or the plan computes the same with any value of them.
  SmallVector<int64_t> budgets; ///< of hpc-recompute
  bool withoutCode = false;     ///< kernels are described, not made: enough to know the plan's memory and to simulate it
  std::string kernelCache; ///< folder of hpc-emit-kernels; "" = none

  DictionaryAttr toAttribute(MLIRContext *context) const;
  /// A missing field has its default. Errors: a field that is unknown or of another type, a degree below 1.
  static Expected<Options> fromAttribute(DictionaryAttr attribute);
};

/// The machine of the options, which is read from its text.
cost::Machine machineOf(const Options &options);

/// "host,cuda" as kernels are generated for it (compiler/ModuleAttributes.h): "x86-64,ptx", whatever the order. Errors:
/// none, one that is unknown or there twice.
Expected<std::string> kernelTargets(const std::string &target);

} // namespace hpc
