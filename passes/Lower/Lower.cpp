// The whole plan: ports, stages, transfers between them, code.
#include "passes/Lower/Lower.h"

#include "compiler/Dialect/NN/DefaultInputs.h"
#include "compiler/Dialect/NN/Parameter.h"
#include "compiler/Dialect/Pipe/Schedule.h"
#include "compiler/ElementType.h"
#include "compiler/Location.h"
#include "compiler/ModuleAttributes.h"
#include "passes/Lower/StageLowering.h"
#include "runtime/plan/Access.h"
#include "runtime/plan/ScheduleCheck.h"
#include "runtime/plan/ScheduleKinds.h"
#include "runtime/plan/StepPorts.h"

#include <set>

namespace hpc {

namespace {
struct PlanLowering {
  ModuleOp module;
  func::FuncOp function;
  const LowerOptions &options;
  Tables tables;
  Lowered lowered;
  PlanWeights weights;
  const std::map<std::string, unsigned> written; ///< parameters and states
  std::vector<int32_t> inputNumbers, outputNumbers; ///< of the plan, by argument and result of @main
  llvm::DenseMap<Operation *, int32_t> channels; ///< of transfers

  PlanLowering(ModuleOp module, func::FuncOp function, const LowerOptions &options)
      : module(module), function(function), options(options), tables(dist::meshOf(module)),
        weights(lowered.plan, options.planFolder), written(nn::writtenBy(function)) {}

  /// Those that the input does not have yet.
  static void addLookups(const nn::ArgumentPort &of, plan::Port &input) {
    for (const nn::Lookup &lookup : of.lookups) {
      bool isKnown = llvm::any_of(input.lookups, [&](const plan::Lookup &each) {
        return std::tie(each.begin, each.end, each.low, each.high, each.ignored, each.reader) ==
               std::tie(lookup.begin, lookup.end, lookup.low, lookup.high, lookup.ignored, lookup.reader);
      });
      if (!isKnown)
        input.lookups.push_back(
            {lookup.begin, lookup.end, lookup.low, lookup.high, lookup.ignored, lookup.reader});
    }
  }

  /// States and written values are no ports: `inputNumbers` and `outputNumbers` have -1 for them. What is whole of an
  /// input is that one's.
  void lowerPorts() {
    auto port = [](const std::string &name, Type type, bool isStepScalar) {
      auto tensor = cast<RankedTensorType>(type);
      return plan::Port{name, dtypeOf(tensor), dist::globalType(tensor).getShape().vec(), isStepScalar};
    };
    for (BlockArgument argument : function.getArguments()) {
      unsigned number = argument.getArgNumber();
      nn::ArgumentPort is = nn::argumentPort(function, number);
      inputNumbers.push_back(is.isGiven() ? int32_t(lowered.plan.inputs.size()) : -1);
      std::string name = !is.stepScalar.empty() ? is.stepScalar : is.name;
      if (!is.isGiven())
        continue;
      plan::Port &input = lowered.plan.inputs.emplace_back(
          port(name.empty() ? "input" + std::to_string(number) : name, argument.getType(), !is.stepScalar.empty()));
      input.defaultInput = is.defaultInput;
      input.largest = is.largest;
      addLookups(is, input);
    }
    for (BlockArgument argument : function.getArguments()) {
      nn::ArgumentPort is = nn::argumentPort(function, argument.getArgNumber());
      if (is.wholeOf.empty())
        continue;
      auto input = llvm::find_if(lowered.plan.inputs, [&](const plan::Port &each) { return each.name == is.wholeOf; });
      inputNumbers[argument.getArgNumber()] = int32_t(input - lowered.plan.inputs.begin());
      addLookups(is, *input);
    }
    for (auto [number, type] : llvm::enumerate(function.getResultTypes())) {
      nn::ResultPort is = nn::resultPort(function, unsigned(number));
      outputNumbers.push_back(is.writes.empty() ? int32_t(lowered.plan.outputs.size()) : -1);
      if (!is.writes.empty())
        continue;
      std::string name = !is.gradient.empty() ? plan::gradientPrefix + is.gradient
                         : is.name.empty()    ? "output" + std::to_string(number)
                                              : is.name;
      lowered.plan.outputs.push_back(port(name, type, false));
      lowered.plan.outputs.back().onRequest = !is.gradient.empty();
    }
  }

  /// After the stages: what they call is what the code defines.
  void lowerCode() {
    if (std::optional<GeneratedCode> code = generatedCode(module)) {
      plan::CodeModule &host = lowered.plan.modules.emplace_back();
      host.target = hostTarget;
      host.bytes.assign(code->bytes.begin(), code->bytes.end());
      host.features = code->features;
    }
    if (StringRef code = deviceCode(module); !code.empty()) {
      plan::CodeModule &device = lowered.plan.modules.emplace_back();
      device.target = deviceTarget;
      device.bytes = code.str();
      device.capability = deviceCapability;
    }
    std::set<std::string> symbols;
    for (const plan::Stage &stage : lowered.plan.stages)
      for (const plan::Program &program : stage.programs)
        for (const plan::Instruction &instruction : program.instructions)
          if (const auto *kernel = std::get_if<plan::Kernel>(&instruction.action))
            symbols.insert(kernel->symbol);
    for (plan::CodeModule &code : lowered.plan.modules)
      code.symbols.assign(symbols.begin(), symbols.end());
  }

  static plan::Reason reasonOf(pipe::TransferOp transfer) {
    auto text = [](std::optional<StringRef> value) { return value ? value->str() : std::string(); };
    return {nodeName(transfer.getLoc()), modulePath(transfer.getLoc()), text(transfer.getCause()),
            text(transfer.getAvoid())};
  }

  void takeArgument(BlockArgument argument, ProgramInput &input) {
    input.graphPort = inputNumbers[argument.getArgNumber()];
    input.port = nn::argumentPort(function, argument.getArgNumber());
  }
  void giveResult(unsigned number, ProgramOutput &output) {
    output.graphPort = outputNumbers[number];
    output.onRequest = output.graphPort >= 0 && lowered.plan.outputs[size_t(output.graphPort)].onRequest;
    output.writes = nn::resultPort(function, number).writes;
  }

  /// The values that a program reads: arguments of the function, results of transfers and of other programs of its stage.
  std::vector<ProgramInput> inputsOf(pipe::StageOp program) {
    std::vector<ProgramInput> inputs;
    for (auto [operand, inside] : llvm::zip(program.getOperands(), program.getBody().front().getArguments())) {
      ProgramInput input;
      input.value = inside;
      if (auto argument = dyn_cast<BlockArgument>(operand)) {
        takeArgument(argument, input);
      } else if (auto transfer = operand.getDefiningOp<pipe::TransferOp>()) {
        input.channel = channels.lookup(transfer);
        input.peerStage = int64_t(transfer.getFrom());
        input.reason = reasonOf(transfer);
      } else {
        auto result = cast<OpResult>(operand);
        Operation *yield = cast<pipe::StageOp>(result.getOwner()).getBody().front().getTerminator();
        input.source = yield->getOperand(result.getResultNumber());
      }
      inputs.push_back(std::move(input));
    }
    return inputs;
  }

  static plan::StageProgram keyOf(pipe::StageOp program) {
    return {pipe::planKind(program.getProgram()), int32_t(program.getChunk())};
  }

  /// Where the results of a program go; one that goes to two places appears twice.
  std::vector<ProgramOutput> outputsOf(pipe::StageOp program) {
    // Uses of a result come in no fixed order; equal keys keep the order of the results.
    std::multimap<std::tuple<int32_t, int32_t, plan::ProgramKind, int32_t>, ProgramOutput> sorted;
    Operation *yield = program.getBody().front().getTerminator();
    for (auto [number, result] : llvm::enumerate(program.getResults()))
      for (OpOperand &use : result.getUses()) {
        ProgramOutput output;
        output.value = yield->getOperand(number);
        if (auto transfer = dyn_cast<pipe::TransferOp>(use.getOwner())) {
          output.channel = channels.lookup(transfer);
          output.peerStage = int64_t(transfer.getTo());
          output.reason = reasonOf(transfer);
        } else if (auto reader = dyn_cast<pipe::StageOp>(use.getOwner())) {
          output.reader = keyOf(reader);
        } else {
          giveResult(use.getOperandNumber(), output);
        }
        plan::StageProgram reader = output.reader.value_or(plan::StageProgram{});
        sorted.emplace(std::tuple(output.graphPort, output.channel, reader.kind, reader.chunk), std::move(output));
      }
    std::vector<ProgramOutput> outputs;
    for (auto &entry : sorted)
      outputs.push_back(std::move(entry.second));
    return outputs;
  }

  void take(StageLowering &stage) {
    lowered.plan.stages.push_back(std::move(stage.stage));
    numberInstructions(lowered.plan.stages.back(), stage.noted);
    llvm::append_range(lowered.noted, stage.noted);
    llvm::append_range(lowered.values, stage.values);
  }

  /// Gives instructions their ids. A value was seen after some instruction of its program, by its index: it becomes that which
  /// completes it.
  void numberInstructions(plan::Stage &stage, std::vector<NotedValue> &noted) const {
    llvm::DenseMap<int32_t, int32_t> receivedBy; // buffers by request
    int32_t next = 0;
    auto value = noted.begin();
    for (size_t number = 0; number < stage.programs.size(); ++number) {
      llvm::DenseMap<int32_t, int32_t> completed; // by buffer: the id of its last writer so far
      for (auto [index, instruction] : llvm::enumerate(stage.programs[number].instructions)) {
        instruction.id = next++;
        for (const plan::BufferAccess &access : plan::accessesOf(lowered.plan, instruction))
          if (access.write)
            completed[access.ref.buffer] = instruction.id;
        if (const auto *receive = std::get_if<plan::Recv>(&instruction.action))
          receivedBy[receive->request] = receive->dst.buffer;
        else if (const auto *wait = std::get_if<plan::Wait>(&instruction.action); wait && receivedBy.count(wait->request))
          completed[receivedBy.lookup(wait->request)] = instruction.id;
        for (; value != noted.end() && value->program == int64_t(number) && value->completedBy == int32_t(index); ++value) {
          auto writer = completed.find(value->place.buffer);
          value->completedBy = writer == completed.end() ? -1 : writer->second;
        }
      }
    }
    assert(value == noted.end() && "values are noted in the order of instructions");
  }

  /// A function without stages is one.
  Status lowerWhole() {
    if (!written.empty() && tables.microBatches() > 1)
      return Status::error(ErrorKind::Internal, "@main writes '" + written.begin()->first +
                                                    "' and has micro-batches, but no update; run the stage phase");
    std::vector<ProgramInput> inputs;
    for (BlockArgument argument : function.getArguments()) {
      ProgramInput &input = inputs.emplace_back();
      input.value = argument;
      takeArgument(argument, input);
    }
    std::vector<ProgramOutput> outputs;
    Block &body = function.getBody().front();
    for (OpOperand &operand : body.getTerminator()->getOpOperands()) {
      ProgramOutput &output = outputs.emplace_back();
      output.value = operand.get();
      giveResult(operand.getOperandNumber(), output);
    }
    Expected<plan::PipelineSchedule> schedule =
        plan::makeSchedule(plan::ScheduleKind::Inference, 1, 1, tables.microBatches());
    if (!schedule.ok())
      return schedule.status();
    StageLowering stage(tables, weights, written, 0, schedule->front());
    HPC_RETURN_IF_ERROR(stage.addProgram({plan::ProgramKind::Forward, 0}, body, inputs, outputs, /*isLast=*/true));
    HPC_RETURN_IF_ERROR(stage.bindSchedule());
    take(stage);
    return Status::success();
  }

  Status run() {
    lowered.plan.model = options.modelName;
    lowered.plan.axes = tables.axes();
    lowered.plan.microBatches = tables.microBatches();
    lowerPorts();
    HPC_RETURN_IF_ERROR(lowerStages());
    nn::eachUnread(function->getParentOfType<ModuleOp>(), [&](nn::ParameterOp op) { weights.weight(op); });
    lowerCode();
    markDefaults();
    return Status::success();
  }

  /// Inputs that have values in the model: which weights are such. One that is several of them, or that folded into the
  /// program, cannot be given alone.
  void markDefaults() {
    llvm::StringSet<> defaults = nn::defaultInputs(module), shared;
    if (defaults.empty())
      return;
    module.walk([&](nn::ParameterOp op) {
      for (StringRef alias : op.getAliases().value_or(ArrayAttr::get(op.getContext(), {})).getAsValueRange<StringAttr>())
        if (alias != op.getName() && defaults.contains(alias)) {
          shared.insert(alias);
          shared.insert(op.getName());
        }
    });
    for (plan::Weight &weight : lowered.plan.weights)
      weight.isInput = defaults.contains(weight.name) && !shared.contains(weight.name);
    for (const auto &entry : defaults)
      if (llvm::none_of(lowered.plan.weights,
                        [&](const plan::Weight &weight) { return weight.isInput && weight.name == entry.getKey(); }))
        lowered.plan.compiledIn.push_back(entry.getKey().str());
    llvm::sort(lowered.plan.compiledIn);
  }

  Status lowerStages() {
    Block &body = function.getBody().front();
    SmallVector<pipe::StageOp> programs(body.getOps<pipe::StageOp>());
    if (programs.empty())
      return lowerWhole();
    for (auto [channel, transfer] : llvm::enumerate(body.getOps<pipe::TransferOp>()))
      channels[transfer] = int32_t(channel);
    Expected<plan::PipelineSchedule> schedule = pipe::readSchedule(function);
    if (!schedule.ok())
      return schedule.status();
    // A dumped phase may have been edited since stage checked it.
    plan::Pipeline pipeline = pipe::pipelineOf(function, tables.microBatches());
    HPC_RETURN_IF_ERROR(plan::checkSchedule(pipeline, *schedule).status().at("pipe.schedule"));
    for (auto [index, stageSchedule] : llvm::enumerate(*schedule)) {
      StageLowering stage(tables, weights, written, int64_t(index), stageSchedule);
      SmallVector<pipe::StageOp> ofStage;
      for (pipe::StageOp program : programs)
        if (program.getIndex() == index)
          ofStage.push_back(program);
      for (pipe::StageOp program : ofStage)
        HPC_RETURN_IF_ERROR(stage.addProgram(keyOf(program), program.getBody().front(), inputsOf(program),
                                             outputsOf(program), program == ofStage.back()));
      HPC_RETURN_IF_ERROR(stage.bindSchedule());
      take(stage);
    }
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
