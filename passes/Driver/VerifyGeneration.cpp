// Each step is compared three times: in double with the forward pass of whole sequences, which judges the derivation; then as any plan is
// (Verify.h), from the states that the plan's own steps have left; and rows that change places, exactly.
#include "passes/Driver/VerifyGeneration.h"

#include "compiler/Dialect/NN/Ports.h"
#include "compiler/ElementType.h"
#include "compiler/Interpreter/Steps.h"
#include "compiler/Interpreter/StoredParameters.h"
#include "passes/Driver/Difference.h"
#include "passes/Driver/VerifyInputs.h"
#include "passes/Driver/VerifyRun.h"
#include "runtime/base/CountText.h"
#include "runtime/base/FormattedText.h"
#include "runtime/plan/Entries.h"

namespace hpc {

namespace {

enum Entry { Prefill, Decode, Reorder };

/// One step of the sequence. `row` of its rows is the last that is no padding.
struct Step {
  Entry entry;
  int64_t position, row;

  std::string text() const { return std::string(entry == Prefill ? "prefill" : "decode") + " at position " + std::to_string(position); }
};

/// `ring`: rows of the largest cache that has fewer than all, which chunks pass twice; 0 where there is none.
std::vector<Step> stepsOf(int64_t chunk, int64_t length, int64_t ring) {
  const int64_t chunks = std::min(length / chunk, std::max<int64_t>(chunk > 1 ? 2 : 1, 2 * ring / chunk + 1));
  std::vector<Step> steps;
  for (int64_t position = 0; position < chunks * chunk; position += chunk)
    steps.push_back({Prefill, position, chunk - 1});
  // The last rows of the last chunk are padding, which decoding overwrites: two at most.
  if (chunks > 1 || chunk == length)
    steps.back().row = std::max<int64_t>(0, chunk - 3);
  int64_t next = steps.back().position + steps.back().row + 1;
  for (int64_t last = std::min(length, next + 4); next < last; ++next)
    steps.push_back({Decode, next, 0});
  return steps;
}

/// Far from what models compute, and the same number in all float types.
constexpr double unwritten = 12288;

func::FuncOp stepFunction(ModuleOp module) { return module.lookupSymbol<func::FuncOp>("main"); }

class GenerationVerifier {
public:
  explicit GenerationVerifier(const GenerationVerification &what) : what(what) {}

  Expected<std::string> run() {
    HPC_RETURN_IF_ERROR(start());
    int64_t ring = 0;
    for (const auto &[name, state] : kept)
      if (const int64_t rows = state.shape[2]; rows < what.maxLength)
        ring = std::max(ring, rows);
    std::vector<Step> steps = stepsOf(what.chunk, what.maxLength, ring);
    StepReport worst;
    for (const Step &step : steps) {
      HPC_RETURN_IF_ERROR(compareWithWhole(step).at(step.text()));
      session->entry = step.entry;
      Expected<StepReport> report = verifyStep(entries[step.entry], argumentsOf(step), *session);
      HPC_RETURN_IF_ERROR(report.status().at(step.text()));
      worst.partition = std::max(worst.partition, report->partition);
      worst.plan = std::max(worst.plan, report->plan);
      worst.values += report->values;
      worst.buffers += report->buffers;
    }
    HPC_RETURN_IF_ERROR(compareReordered().at("reorder"));
    return "verified: " + countText(int64_t(steps.size()), "step") + " of generation, at positions 0 to " + std::to_string(steps.back().position) +
           formattedText(" == the forward pass of whole sequences in double (off by %.2g of the largest value), ", furthest) +
           countText(worst.values, "value") + formattedText(" == serial in double (%.2g of the bound), ", worst.partition) +
           countText(worst.buffers, "buffer") + formattedText(" of the plan (%.2g of the bound); rows of states change places exactly\n", worst.plan);
  }

private:
  const GenerationVerification &what;
  std::deque<Lowered> lowered; ///< by entry: of the merged plan
  std::vector<Verification> entries;
  plan::Plan plan;
  std::unique_ptr<VerifySession> session;
  Tensor ids;    ///< whole sequences
  Tensor logits; ///< of `whole`, in double
  KeptTensors kept;
  double furthest = 0;

  Status start() {
    plan = what.merged.plan;
    for (plan::Stage &stage : plan.stages)
      for (plan::Binding &binding : stage.bindings)
        if (!binding.saved.empty())
          binding.start = plan::Number{unwritten};
    for (const Verification *step : {&what.prefill, &what.decode}) {
      const size_t number = entries.size();
      Lowered &own = lowered.emplace_back(Lowered{plan::planOf(plan, number), step->lowered.noted, step->lowered.values});
      for (NotedValue &noted : own.noted)
        noted.place.buffer = what.merged.buffers[number][size_t(noted.stage)][size_t(noted.place.buffer)];
      entries.push_back({step->serial, step->propagated, step->compiled, own, step->planFolder, ""});
    }
    Expected<std::unique_ptr<VerifySession>> made = VerifySession::create(plan, what.prefill.planFolder);
    HPC_RETURN_IF_ERROR(made.status());
    session = std::move(*made);
    func::FuncOp whole = stepFunction(what.whole);
    Expected<std::vector<Tensor>> inputs = inputsFor(whole, what.prefill.inputs);
    HPC_RETURN_IF_ERROR(inputs.status());
    RunOptions options;
    options.doublePrecision = true;
    options.parameters = storedParametersFromFiles(".");
    Expected<std::vector<Tensor>> outputs = runFunction(whole, *inputs, options);
    HPC_RETURN_IF_ERROR(outputs.status());
    func::FuncOp step = stepFunction(what.decode.serial);
    const int64_t vocabulary = nn::shapeOf(step.getBody().front().getTerminator()->getOperand(0)).back();
    auto given = llvm::find_if(*inputs, [&](const Tensor &input) { return !input.isFloat() && input.shape.size() == 2; });
    auto wanted = llvm::find_if(*outputs, [&](const Tensor &output) { return output.shape.size() == 3 && output.shape[2] == vocabulary; });
    if (given == inputs->end() || wanted == outputs->end())
      return Status::error(ErrorKind::Internal, "the model on whole sequences has no ids or no logits");
    ids = *given;
    logits = *wanted;
    for (BlockArgument argument : step.getArguments())
      if (nn::ArgumentPort port = nn::argumentPort(step, argument.getArgNumber()); port.isState()) {
        Tensor state(dtypeOf(argument.getType()), nn::shapeOf(argument));
        for (int64_t i = 0; i < state.size(); ++i)
          state.setNumber(i, unwritten);
        kept[port.state] = std::move(state);
      }
    return Status::success();
  }

  /// The ids of a step, its position and its row, and with `states` these: all arguments in their order.
  std::vector<Tensor> inputsOf(const Step &step, bool withStates) const {
    func::FuncOp function = stepFunction(entries[step.entry].serial);
    std::vector<Tensor> inputs;
    for (BlockArgument argument : function.getArguments()) {
      const nn::ArgumentPort port = nn::argumentPort(function, argument.getArgNumber());
      if (port.isState()) {
        if (withStates)
          inputs.push_back(kept.at(port.state));
        continue;
      }
      Tensor input(dtypeOf(argument.getType()), nn::shapeOf(argument));
      if (!port.stepScalar.empty())
        input.setNumber(0, double(port.stepScalar == "position" ? step.position : step.row));
      else
        for (int64_t batch = 0, rows = input.shape[1]; batch < input.shape[0]; ++batch)
          for (int64_t row = 0; row < rows; ++row)
            input.setNumber(batch * rows + row, ids.number(batch * ids.shape[1] + step.position + row));
      inputs.push_back(std::move(input));
    }
    return inputs;
  }
  /// With the states as they were before the step; compareWithWhole moves them on.
  std::vector<Tensor> argumentsOf(const Step &) { return std::move(arguments); }
  std::vector<Tensor> arguments;

  /// The derived step in double against the rows of the forward pass. A fault of the derivation is no rounding.
  Status compareWithWhole(const Step &step) {
    arguments = inputsOf(step, true);
    RunOptions options;
    options.doublePrecision = true;
    options.parameters = storedParametersFromFiles(".");
    Expected<std::vector<Tensor>> outputs = runStep(stepFunction(entries[step.entry].serial), inputsOf(step, false), kept, nullptr, options);
    HPC_RETURN_IF_ERROR(outputs.status());
    const Tensor &found = outputs->front();
    const int64_t rows = logits.shape[0], vocabulary = logits.shape[2], at = step.position + step.row;
    if (found.size() != rows * vocabulary)
      return Status::error(ErrorKind::Plan, "the step has " + shapeText(found.shape) + " logits, and the forward pass " + shapeText(logits.shape));
    const double largest = largestMagnitude(logits), bound = 1e-5 * largest;
    for (int64_t batch = 0; batch < rows; ++batch)
      for (int64_t i = 0; i < vocabulary; ++i) {
        const double is = found.number(batch * vocabulary + i), should = logits.number((batch * logits.shape[1] + at) * vocabulary + i);
        furthest = std::max(furthest, std::abs(is - should) / std::max(largest, 1e-300));
        if (!(std::abs(is - should) <= bound))
          return Status::error(ErrorKind::Plan, "the derived step differs from the forward pass of whole sequences at [" + std::to_string(batch) + ", " +
                                                    std::to_string(at) + ", " + std::to_string(i) + "]: " + differenceText({is, should, bound, 0}));
      }
    return Status::success();
  }

  /// Each row becomes what the next was, the last one what the first was.
  Status compareReordered() {
    const plan::Plan &own = session->session->entry(Reorder);
    std::vector<Array> inputs, outputs;
    const int64_t rows = int64_t(own.inputs.size());
    auto from = [&](int64_t row) { return (row + 1) % rows; };
    for (int64_t row = 0; row < rows; ++row) {
      inputs.push_back(Array::zeros(DType::I64, {}));
      inputs.back().as<int64_t>()[0] = from(row);
    }
    std::map<std::string, Tensor> before;
    for (const auto &[name, tensor] : kept) {
      Expected<Tensor> state = session->state(name);
      HPC_RETURN_IF_ERROR(state.status());
      before[name] = std::move(*state);
    }
    session->entry = Reorder;
    HPC_RETURN_IF_ERROR(session->session->run(Reorder, inputs, outputs, Outputs::All));
    for (const auto &[name, was] : before) {
      Expected<Tensor> is = session->state(name);
      HPC_RETURN_IF_ERROR(is.status());
      const int64_t size = was.size() / rows;
      for (int64_t i = 0; i < was.size(); ++i)
        if (const double should = was.number(from(i / size) * size + i % size); is->number(i) != should)
          return Status::error(ErrorKind::Plan, "state '" + name + "' differs at index [" + indexText(was.shape, i) + "], which is of row " +
                                                    std::to_string(from(i / size)) + ": " + differenceText({is->number(i), should, 0, i}));
    }
    return Status::success();
  }
};

} // namespace

Expected<std::string> verifyGeneration(const GenerationVerification &what) { return GenerationVerifier(what).run(); }

} // namespace hpc
