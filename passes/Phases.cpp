// Every pass of the phases raise to kernels in order, each with the reason for its place. Import, lower and place are no passes.
#include "passes/Phases.h"

#include "compiler/Diagnostics.h"
#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/NN.h"
#include "compiler/Dialect/Pipe/Pipe.h"
#include "compiler/HpcDialect.h"
#include "passes/Annotate/Passes.h"
#include "passes/Generate/Passes.h"
#include "passes/Kernels/Passes.h"
#include "passes/Partition/Passes.h"
#include "passes/Precision/Passes.h"
#include "passes/Propagate/Passes.h"
#include "passes/Raise/Passes.h"
#include "passes/Recompute/Passes.h"
#include "passes/Stage/Passes.h"
#include "passes/Train/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace hpc {

/// "tp=2" of each axis.
static SmallVector<std::string> degreeTexts(const Options &options) {
  SmallVector<std::string> texts;
  for (const dist::Mesh::Axis &axis : options.degrees.axes)
    texts.push_back(axis.name + "=" + std::to_string(axis.size));
  return texts;
}

/// Exporters' idioms become one op each.
static void buildRaise(OpPassManager &passes, const Options &) {
  passes.addPass(createTieWeights());     // first: one parameter per weight, so that every later match sees it shared
  passes.addPass(createSimplify());       // spellings that differ in nothing, so that the matchers see few of them
  passes.addPass(createRaiseLayerNorm()); // before linear: norms on [B*S, C] move as one op
  passes.addPass(createRaiseGelu());      // likewise
  passes.addPass(createRaiseSoftmax());   // likewise, and attention is found by it
  passes.addPass(createRaiseCrossEntropy()); // likewise; what softmax has not taken
  passes.addPass(createRaiseLinear());    // [B*S, C] becomes [B, S, C], and the reshapes round heads come together
  passes.addPass(createSplitProducts());  // its products are those of [B, S, C], their biases beside them
  passes.addPass(createRaiseAttention()); // last: it needs q, k and v as [B, H, S, D]
  passes.addPass(createSimplify());       // again: patterns leave such ops
  passes.addPass(createVerifyRaised());
}

/// A graph becomes one whole training step.
static void buildTrain(OpPassManager &passes, const Options &options) {
  passes.addPass(createAppendLoss({options.loss}));        // first: it is what gradients are of
  passes.addPass(createBuildGradients({options.scalesLoss(), options.freeze})); // complete gradients, of the forward ops as they stand
  passes.addPass(createClipGradients({options.clip})); // over all gradients, as they are complete
  passes.addPass(createAppendOptimizer({options.optimizer, options.momentum, options.nesterov, options.beta1,
                                        options.beta2, options.epsilon, options.weightDecay, options.decay}));
  passes.addPass(createHoldWholeInputs({options.microBatches(), options.batchDim})); // last: of all that a step reads
  passes.addPass(createVerifyTrain());
}

/// Dtypes follow the policy of --dtype. Before anything is cut, so that --verify judges it as part of the serial program.
static void buildPrecision(OpPassManager &passes, const Options &options) {
  passes.addPass(createQuantizeWeights({options.weights, QuantizeWeightsOptions().least})); // first: of weights as they are stored
  passes.addPass(createNarrowProducts({options.dtype}));
  passes.addPass(createVerifyPrecision({options.dtype}));
}

/// Flags become a mesh and seeds on a few tensors.
static void buildAnnotate(OpPassManager &passes, const Options &options) {
  passes.addPass(createBuildMesh({degreeTexts(options), options.tpLayout})); // names the axes that seeds use
  passes.addPass(createNoteLookups());     // while a value is what the user gives
  passes.addPass(createAnnotateSidecar()); // before the defaults, which leave alone what the user has decided
  passes.addPass(createAnnotateBatch({options.batchDim}));
  passes.addPass(createAnnotateTensorParallel({options.layout(), options.batchDim}));
  passes.addPass(createAnnotateSequence({options.cpMode, options.cpBalance})); // beside what a layout cuts of the same values
  passes.addPass(createAnnotateZero({options.zero})); // a dim that nothing above has cut
  if (options.deterministic)
    passes.addPass(createExactSums({options.batchDim})); // behind layouts, which are found from products
  passes.addPass(createVerifyAnnotated());
}

/// Seeds become a sharding of every tensor.
static void buildPropagate(OpPassManager &passes, const Options &) {
  passes.addPass(createPropagateShardings());
  passes.addPass(createVerifyPropagated());
}

/// Global shapes become local ones, and the collectives between them appear.
static void buildPartition(OpPassManager &passes, const Options &options) {
  passes.addPass(createDecomposeSharded()); // first: it makes ops that need reshards of their own
  passes.addPass(createCollectPartials());  // before reshards: partial terms of a sum share one all-reduce
  passes.addPass(createInsertReshards({options.zero}));
  passes.addPass(createNarrowReshards()); // before tails, which are of what arrives
  passes.addPass(createFillTails()); // on the operands as they arrive, so after reshards
  passes.addPass(createLocalize());  // last: until here every shape is global
  passes.addPass(createVerifyPartitioned());
  if (options.cpMode == "ring") {
    passes.addPass(createRingAttention()); // after the verifier, which derives ops from their global form
    passes.addPass(createVerifyRings());
  }
}

/// A graph of whole sequences becomes one step of generation: the passes that make one program of many ranks, on virtual ranks that
/// are the steps. Serial again at the end. After precision, which rounds keys and values before they are held.
static void buildGenerate(OpPassManager &passes, const Options &options) {
  passes.addPass(createKeepLogits({options.maxLength}));
  passes.addPass(createAnnotateSteps({options.maxLength, options.stepRows}));
  passes.addPass(createVerifyAnnotated());
  buildPropagate(passes, Options());
  buildPartition(passes, Options());
  passes.addPass(createHoldKeys());
  passes.addPass(createSimplify());    // equal masks and places are one value, which is proven once
  passes.addPass(createProveCausal()); // on masks as a step computes them
  passes.addPass(createKeepWindows({options.chunkRows})); // on windows that are proven
  passes.addPass(createSimplify());    // its masks are made for each layer, and most are equal
  passes.addPass(createVerifyGenerated());
}

/// One program becomes stages.
static void buildStage(OpPassManager &passes, const Options &options) {
  passes.addPass(createSplitStages({options.stages(), options.ppChunks, options.ppSplit, options.ppSchedule,
                                   /*markBlocks=*/options.recompute != "none"}));
  passes.addPass(createMakeSchedule({options.ppSchedule})); // it reads what crosses from the transfers
  passes.addPass(createVerifyStaged());
}

/// Values of forward that backward reads are kept or computed again.
static void buildRecompute(OpPassManager &passes, const Options &options) {
  passes.addPass(createRecompute({options.recompute, options.panels, options.budgets})); // knows programs, blocks and slots
  passes.addPass(createVerifyRecomputed());
  passes.addPass(createVerifyStaged()); // what stage promises still holds
}

/// Ops that no library computes become machine code.
static void buildKernels(OpPassManager &passes, const Options &options) {
  passes.addPass(createBindCasts());           // first: what is read in parts may be read in 16 bits
  passes.addPass(createBindParts());           // before anything else takes slices of weights for work
  if (options.panels)
    passes.addPass(createPanelProducts());     // on gathers with their shardings
  passes.addPass(createPackCollectives());     // its views are fused like all others
  passes.addPass(createDecomposeComposites()); // those that nobody computes whole
  passes.addPass(createFoldTransposes());      // a transpose that a matmul takes as a flag need not be copied
  passes.addPass(createBindInt8());            // once products read weights themselves; before its scaling is fused
  passes.addPass(createMultiplyWindows());     // before sums of a depthwise convolution are split or fused
  passes.addPass(createSplitReductions());     // before fusion: what is reduced joins the partial results
  passes.addPass(createFuseRegions());
  passes.addPass(createWriteInPlace()); // on whole regions; kernels in place are kernels of their own
  EmitKernelsOptions emit;
  emit.withoutCode = options.withoutCode;
  emit.kernelCache = options.kernelCache;
  passes.addPass(createEmitKernels(emit));
  if (!options.withoutCode)
    passes.addPass(createVerifyKernels());
}

static bool trains(const Options &options) { return options.trains(); }
static bool generates(const Options &options) { return options.generates(); }
static bool changesTypes(const Options &options) { return options.narrowsProducts() || options.quantizesWeights(); }

ArrayRef<Phase> phases() {
  static const Phase all[] = {{"raise", buildRaise},         {"train", buildTrain, trains},
                              {"precision", buildPrecision, changesTypes},
                              {"generate", buildGenerate, generates},
                              {"annotate", buildAnnotate},   {"propagate", buildPropagate},
                              {"partition", buildPartition}, {"stage", buildStage},
                              {"recompute", buildRecompute, trains}, {"kernels", buildKernels}};
  return all;
}

std::string phaseNames() {
  std::string names = "import";
  for (const Phase &phase : phases())
    names += ", " + phase.name.str();
  return names;
}

std::optional<size_t> phasesUpTo(StringRef name) {
  if (name == "import")
    return 0;
  for (auto [index, phase] : llvm::enumerate(phases()))
    if (phase.name == name)
      return index + 1;
  return std::nullopt;
}

std::optional<size_t> phasesDone(ModuleOp module) {
  Attribute done = module->getAttr(phaseAttrName);
  auto name = dyn_cast_if_present<StringAttr>(done);
  return done ? name ? phasesUpTo(name.getValue()) : std::nullopt : 0;
}

LogicalResult runPhases(ModuleOp module, const Options &options, StringRef last,
                        const std::function<LogicalResult(StringRef)> &afterPhase,
                        const std::function<void(PassManager &)> &configure) {
  std::optional<size_t> done = phasesDone(module), end = last.empty() ? phases().size() : phasesUpTo(last);
  if (!done)
    return userError(module, ErrorKind::Model)
           << phaseAttrName << " = " << module->getAttr(phaseAttrName) << " is no phase; phases are " << phaseNames()
           << "; leave the attribute as hpc-opt --dump-phases wrote it";
  if (!end)
    return userError(module, ErrorKind::Usage) << "'" << last << "' is no phase; phases are " << phaseNames();
  if (*end < *done)
    return userError(module, ErrorKind::Usage)
           << "the program is past '" << last << "': " << phaseAttrName << " = " << module->getAttr(phaseAttrName)
           << ", and no phase can be undone; start from the model or an earlier file of --dump-phases";
  Expected<std::string> targets = kernelTargets(options.target);
  if (!targets.ok())
    return userError(module, targets.status().kind()) << targets.status().message();
  if (*targets != hostTarget) // which a module that names none is made for
    module->setAttr(targetAttrName, StringAttr::get(module.getContext(), *targets));
  for (const Phase &phase : phases().slice(*done, *end - *done)) {
    if (!phase.isPartOf(options))
      continue;
    PassManager passes(module.getContext());
    configure(passes);
    phase.build(passes, options);
    if (failed(passes.run(module)))
      return failure();
    setPhase(module, phase.name);
    if (failed(afterPhase(phase.name)))
      return failure();
  }
  return success();
}

void registerDialects(DialectRegistry &registry) {
  registry.insert<func::FuncDialect, HpcDialect, nn::NNDialect, dist::DistDialect, pipe::PipeDialect>();
}

void loadDialectsOfPasses(MLIRContext &context) {
  DialectRegistry registry;
  Options options;
  options.cpMode = "ring";
  options.deterministic = options.panels = true;
  for (const Phase &phase : phases()) {
    PassManager passes(&context);
    phase.build(passes, options);
    passes.getDependentDialects(registry);
  }
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
}

void registerPasses() {
  registerRaisePasses();
  registerTrainPasses();
  registerPrecisionPasses();
  registerGeneratePasses();
  registerAnnotatePasses();
  registerPropagatePasses();
  registerPartitionPasses();
  registerStagePasses();
  registerRecomputePasses();
  registerKernelsPasses();
  mlir::registerTransformsPasses(); // canonicalize, cse, symbol-dce ...
}

} // namespace hpc
