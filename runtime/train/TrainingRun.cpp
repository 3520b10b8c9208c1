// Fills the step scalars of a training step and reads its outputs, by the names of runtime/plan/StepPorts.h.
#include "runtime/train/TrainingRun.h"

#include "runtime/base/ArrayElements.h"
#include "runtime/plan/StepPorts.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

namespace hpc {

static std::optional<size_t> findOutput(const plan::Plan &plan, const std::string &name) {
  for (size_t i = 0; i < plan.outputs.size(); ++i)
    if (plan.outputs[i].name == name && plan.outputs[i].shape.empty())
      return i;
  return std::nullopt;
}

/// The value of a step scalar in this step; nullopt: the loop has none of that name.
static std::optional<double> stepScalar(const std::string &name, const RunState &state, double learningRate) {
  if (name == plan::learningRateName)
    return learningRate;
  if (name == plan::stepName)
    return double(state.steps + 1);
  if (name == plan::updateName)
    return double(state.updates + 1);
  if (name == plan::seedName)
    return double(state.seed);
  if (name == plan::lossScaleName)
    return state.lossScale.scale;
  return std::nullopt;
}

bool StepReport::wasSkipped() const { return !std::isfinite(gradientNorm); }

Status checkTrains(const plan::Plan &plan) {
  for (const char *name : {plan::lossName, plan::gradientNormName})
    if (!findOutput(plan, name))
      return Status::error(ErrorKind::Usage, std::string("the plan is no training step: it has no scalar output '") +
                                                 name + "'; compile the model with hpc-opt --train");
  for (const plan::Port &port : plan.inputs) {
    if (!port.isStepScalar)
      continue;
    if (!stepScalar(port.name, {}, 0))
      return Status::error(ErrorKind::Unsupported, "the plan needs step scalar '" + port.name +
                                                       "', which this hpc-run does not know; it is older than the plan");
    if (port.dtype != DType::F64 && port.dtype != DType::F32)
      return Status::error(ErrorKind::Unsupported, "step scalar '" + port.name + "' is " + name(port.dtype) +
                                                       "; f32 and f64 are filled");
  }
  return Status::success();
}

Expected<TrainingRun> TrainingRun::create(const plan::Plan &plan, Session &session, const StepData &data,
                                          const LearningRate &rate, const RunState &state) {
  HPC_RETURN_IF_ERROR(checkTrains(plan));
  TrainingRun run(plan, session, data, rate, state);
  run.loss = *findOutput(plan, plan::lossName);
  run.gradientNorm = *findOutput(plan, plan::gradientNormName);
  run.validTokens = findOutput(plan, plan::validTokensName);
  for (const plan::Port &port : plan.inputs)
    run.inputs.push_back(port.isStepScalar ? Array::zeros(port.dtype, {}) : Array());
  return run;
}

bool TrainingRun::has(const std::string &stepScalar) const {
  return std::any_of(plan->inputs.begin(), plan->inputs.end(),
                     [&](const plan::Port &port) { return port.isStepScalar && port.name == stepScalar; });
}

Status TrainingRun::step(double learningRate, Outputs wanted) {
  const auto start = std::chrono::steady_clock::now();
  HPC_RETURN_IF_ERROR(ahead.take(now.steps, inputs));
  readerSeconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!plan->inputs[i].isStepScalar)
      continue;
    double value = *stepScalar(plan->inputs[i].name, now, learningRate);
    if (inputs[i].dtype == DType::F64)
      inputs[i].as<double>()[0] = value;
    else
      inputs[i].as<float>()[0] = float(value);
  }
  session->nameStep(now.steps);
  return session->run(inputs, outputs, wanted);
}

/// In the process of rank 0, which alone has outputs.
void TrainingRun::readOutputs(StepReport &report) const {
  if (outputs.empty())
    return;
  report.loss = numberAt(outputs[loss], 0);
  report.gradientNorm = numberAt(outputs[gradientNorm], 0);
  if (validTokens)
    report.validTokens = numberAt(outputs[*validTokens], 0);
  if (has(plan::lossScaleName))
    report.lossScale = now.lossScale.scale;
}

/// In the process of rank 0; where the epoch ends, its means are reported and the next one begins.
void TrainingRun::addToEpoch(StepReport &report) {
  EpochSums &sums = now.epoch;
  if (report.wasSkipped()) {
    ++sums.skipped;
  } else {
    ++sums.steps;
    sums.loss += std::isfinite(report.loss) ? report.loss : std::numeric_limits<double>::infinity();
    sums.gradientNorm += report.gradientNorm;
    sums.validTokens += report.validTokens.value_or(0);
  }
  if (data->epochOf(report.step + 1) == report.epoch)
    return;
  const double steps = sums.steps > 0 ? double(sums.steps) : std::numeric_limits<double>::quiet_NaN();
  report.ended = {report.epoch, sums.steps, sums.skipped, sums.loss / steps, sums.gradientNorm / steps, sums.validTokens};
  sums = {};
}

Expected<StepReport> TrainingRun::run() {
  StepReport report;
  report.step = now.steps;
  report.epoch = data->epochOf(now.steps);
  report.batch = data->batchOf(now.steps);
  report.learningRate = rateIn(now.steps, rate, *data);
  if (has(plan::seedName))
    report.seed = now.seed;
  auto start = std::chrono::steady_clock::now();
  HPC_RETURN_IF_ERROR(step(report.learningRate, Outputs::Ordinary));
  report.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  report.readerSeconds = readerSeconds;
  readOutputs(report);
  // All processes fill in step scalars, but only that of rank 0 has the results of the step.
  Expected<bool> wasSkipped = session->any(report.wasSkipped());
  HPC_RETURN_IF_ERROR(wasSkipped.status());
  ++now.steps;
  now.updates += !*wasSkipped;
  skipped = *wasSkipped ? skipped + 1 : 0;
  if (has(plan::lossScaleName))
    now.lossScale.update(*wasSkipped);
  if (!outputs.empty())
    addToEpoch(report);
  return report;
}

Expected<NamedArrays> TrainingRun::gradients(StepReport &report) {
  for (const plan::Port &port : plan->outputs)
    if (port.onRequest && port.name == plan::gradientPrefix + plan->outputs[loss].name)
      return Status::error(ErrorKind::Model, "a parameter has the name '" + plan->outputs[loss].name +
                                                 "', which is that of the loss among the gradients; rename it in the model");
  HPC_RETURN_IF_ERROR(step(0, Outputs::All));
  readOutputs(report);
  NamedArrays named;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string &name = plan->outputs[i].name;
    if (i == loss)
      named.emplace_back(name, std::move(outputs[i]));
    else if (plan->outputs[i].onRequest)
      named.emplace_back(name.substr(plan::gradientPrefix.size()), std::move(outputs[i]));
  }
  outputs.clear();
  return named;
}

} // namespace hpc
