// The whole plan: ports, stages, transfers between them, code.
#include "passes/Lower/Lower.h"

#include "compiler/Dialect/Pipe/Pipe.h"
#include "compiler/ElementType.h"
#include "compiler/Location.h"
#include "passes/Lower/StageLowering.h"

#include <set>

namespace hpc {

namespace {
struct PlanLowering {
  ModuleOp module;
  func::FuncOp function;
  const LowerOptions &options;
  Tables tables;
  Lowered lowered;
  TensorTable weights;
  llvm::DenseMap<Operation *, int32_t> channels; ///< of transfers

  PlanLowering(ModuleOp module, func::FuncOp function, const LowerOptions &options)
      : module(module), function(function), options(options), tables(dist::meshOf(module)),
        weights(lowered.plan, options.planFolder) {}

  static std::string nameOf(DictionaryAttr attrs, const std::string &fallback) {
    auto name = attrs ? attrs.getAs<StringAttr>("nn.name") : StringAttr();
    return name ? name.str() : fallback;
  }

  void lowerPorts() {
    auto port = [](const std::string &name, Type type) {
      auto tensor = cast<RankedTensorType>(type);
      return plan::Port{name, dtypeOf(tensor), dist::globalType(tensor).getShape().vec()};
    };
    for (BlockArgument argument : function.getArguments())
      lowered.plan.inputs.push_back(port(
          nameOf(function.getArgAttrDict(argument.getArgNumber()), "input" + std::to_string(argument.getArgNumber())),
          argument.getType()));
    for (auto [number, type] : llvm::enumerate(function.getResultTypes()))
      lowered.plan.outputs.push_back(
          port(nameOf(function.getResultAttrDict(number), "output" + std::to_string(number)), type));
  }

  /// After the stages: what they call is what the code defines.
  void lowerCode() {
    auto code = module->getAttrOfType<DenseElementsAttr>("hpc.code");
    if (!code)
      return;
    plan::CodeModule &host = lowered.plan.modules.emplace_back();
    host.target = "x86-64";
    ArrayRef<char> bytes = code.getRawData();
    host.bytes.assign(bytes.begin(), bytes.end());
    if (auto features = module->getAttrOfType<ArrayAttr>("hpc.cpu_features"))
      for (auto feature : features.getAsRange<StringAttr>())
        host.features.push_back(feature.str());
    std::set<std::string> symbols;
    for (const plan::Stage &stage : lowered.plan.stages)
      for (const plan::Program &program : stage.programs)
        for (const plan::Instruction &instruction : program.instructions)
          if (const auto *kernel = std::get_if<plan::Kernel>(&instruction.action))
            symbols.insert(kernel->symbol);
    host.symbols.assign(symbols.begin(), symbols.end());
  }

  static plan::Reason reasonOf(pipe::TransferOp transfer) {
    auto text = [](std::optional<StringRef> value) { return value ? value->str() : std::string(); };
    return {nodeName(transfer.getLoc()), modulePath(transfer.getLoc()), text(transfer.getCause()),
            text(transfer.getAvoid())};
  }

  /// What a stage op reads: arguments of the function or results of transfers.
  SmallVector<StageInput> inputsOf(pipe::StageOp stage) {
    SmallVector<StageInput> inputs;
    for (auto [operand, inside] : llvm::zip(stage.getOperands(), stage.getBody().front().getArguments())) {
      StageInput input;
      input.value = inside;
      if (auto argument = dyn_cast<BlockArgument>(operand)) {
        input.graphPort = int32_t(argument.getArgNumber());
      } else {
        auto transfer = cast<pipe::TransferOp>(operand.getDefiningOp());
        input.channel = channels.lookup(transfer);
        input.peerStage = int64_t(transfer.getFrom());
        input.reason = reasonOf(transfer);
      }
      inputs.push_back(std::move(input));
    }
    return inputs;
  }

  /// Where the results of a stage op go; one that goes to two places appears twice.
  SmallVector<StageOutput> outputsOf(pipe::StageOp stage) {
    SmallVector<StageOutput> outputs;
    Operation *yield = stage.getBody().front().getTerminator();
    for (auto [number, result] : llvm::enumerate(stage.getResults()))
      for (OpOperand &use : result.getUses()) {
        StageOutput output;
        output.value = yield->getOperand(number);
        if (auto transfer = dyn_cast<pipe::TransferOp>(use.getOwner())) {
          output.channel = channels.lookup(transfer);
          output.peerStage = int64_t(transfer.getTo());
          output.reason = reasonOf(transfer);
        } else {
          output.graphPort = int32_t(use.getOperandNumber());
        }
        outputs.push_back(std::move(output));
      }
    // Uses come in no fixed order.
    llvm::sort(outputs, [](const StageOutput &a, const StageOutput &b) {
      return std::pair(a.graphPort, a.channel) < std::pair(b.graphPort, b.channel);
    });
    return outputs;
  }

  Status lowerStage(Block &body, ArrayRef<StageInput> inputs, ArrayRef<StageOutput> outputs, int64_t index,
                    int64_t stages) {
    StageLowering stage(tables, weights, index, stages);
    HPC_RETURN_IF_ERROR(stage.run(body, inputs, outputs));
    lowered.plan.stages.push_back(std::move(stage.stage));
    llvm::append_range(lowered.values, stage.values);
    return Status::success();
  }

  /// A function without stages is one.
  Status lowerWhole() {
    SmallVector<StageInput> inputs;
    for (BlockArgument argument : function.getArguments()) {
      StageInput &input = inputs.emplace_back();
      input.value = argument;
      input.graphPort = int32_t(argument.getArgNumber());
    }
    SmallVector<StageOutput> outputs;
    Block &body = function.getBody().front();
    for (OpOperand &operand : body.getTerminator()->getOpOperands()) {
      StageOutput &output = outputs.emplace_back();
      output.value = operand.get();
      output.graphPort = int32_t(operand.getOperandNumber());
    }
    return lowerStage(body, inputs, outputs, 0, 1);
  }

  Status run() {
    lowered.plan.model = options.modelName;
    lowered.plan.axes = tables.axes();
    lowered.plan.microBatches = tables.microBatches();
    lowerPorts();
    HPC_RETURN_IF_ERROR(lowerStages());
    lowerCode();
    return Status::success();
  }

  Status lowerStages() {
    Block &body = function.getBody().front();
    SmallVector<pipe::StageOp> stages(body.getOps<pipe::StageOp>());
    if (stages.empty())
      return lowerWhole();
    for (auto [channel, transfer] : llvm::enumerate(body.getOps<pipe::TransferOp>()))
      channels[transfer] = int32_t(channel);
    for (auto [index, stage] : llvm::enumerate(stages))
      HPC_RETURN_IF_ERROR(lowerStage(stage.getBody().front(), inputsOf(stage), outputsOf(stage), int64_t(index),
                                     int64_t(stages.size())));
    return Status::success();
  }
};
} // namespace

Expected<Lowered> lowerToPlan(ModuleOp module, const LowerOptions &options) {
  auto function = module.lookupSymbol<func::FuncOp>("main");
  if (!function || function.isExternal())
    return Status::error(ErrorKind::Model, "the module has no function @main to lower");
  PlanLowering lowering(module, function, options);
  HPC_RETURN_IF_ERROR(lowering.run());
  return std::move(lowering.lowered);
}

} // namespace hpc
