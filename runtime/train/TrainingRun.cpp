// The names that a training step and its loop share stand here and in passes/Train/Ports.h; a plan that lacks one is refused.
#include "runtime/train/TrainingRun.h"

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

namespace hpc {

static std::optional<size_t> findOutput(const plan::Plan &plan, const std::string &name) {
  for (size_t i = 0; i < plan.outputs.size(); ++i)
    if (plan.outputs[i].name == name && plan.outputs[i].shape.empty())
      return i;
  return std::nullopt;
}

/// A scalar of any float or integer type.
static double numberOf(const Array &array) {
  switch (array.dtype) {
  case DType::F32:
    return array.as<float>()[0];
  case DType::F64:
    return array.as<double>()[0];
  case DType::I64:
    return double(array.as<int64_t>()[0]);
  case DType::I32:
    return array.as<int32_t>()[0];
  default:
    return std::nan("");
  }
}

bool StepReport::wasSkipped() const { return !std::isfinite(gradientNorm); }

std::string metricsLine(const StepReport &report) {
  nlohmann::ordered_json line = {{"step", report.step},
                                 {"loss", report.loss},
                                 {"lr", report.learningRate},
                                 {"grad_norm", report.gradientNorm}};
  if (report.validTokens)
    line["valid_tokens"] = int64_t(*report.validTokens);
  line["ms"] = std::round(report.milliseconds * 1000) / 1000;
  line["skipped"] = report.wasSkipped();
  return line.dump();
}

Status checkTrains(const plan::Plan &plan) {
  for (const char *name : {"loss", "gradient_norm"})
    if (!findOutput(plan, name))
      return Status::error(ErrorKind::Usage, std::string("the plan is no training step: it has no scalar output '") +
                                                 name + "'; compile the model with hpc-opt --train");
  for (const plan::Port &port : plan.inputs) {
    if (!port.isStepScalar)
      continue;
    if (port.name != "lr" && port.name != "step")
      return Status::error(ErrorKind::Unsupported, "the plan wants step scalar '" + port.name +
                                                       "', which this hpc-run does not know; it is older than the plan");
    if (port.dtype != DType::F64 && port.dtype != DType::F32)
      return Status::error(ErrorKind::Unsupported, "step scalar '" + port.name + "' is " + name(port.dtype) +
                                                       "; f32 and f64 are filled");
  }
  return Status::success();
}

Expected<TrainingRun> TrainingRun::create(const plan::Plan &plan, Session &session, const Batches &data,
                                          const LearningRate &rate) {
  HPC_RETURN_IF_ERROR(checkTrains(plan));
  TrainingRun run(plan, session, data, rate);
  run.loss = *findOutput(plan, "loss");
  run.gradientNorm = *findOutput(plan, "gradient_norm");
  run.validTokens = findOutput(plan, "valid_tokens");
  for (const plan::Port &port : plan.inputs)
    run.inputs.push_back(port.isStepScalar ? Array::zeros(port.dtype, {}) : Array());
  return run;
}

Status TrainingRun::step(int64_t step, double learningRate, Outputs wanted) {
  HPC_RETURN_IF_ERROR(data->fill(step, inputs));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!plan->inputs[i].isStepScalar)
      continue;
    double value = plan->inputs[i].name == "lr" ? learningRate : double(step + 1);
    if (inputs[i].dtype == DType::F64)
      inputs[i].as<double>()[0] = value;
    else
      inputs[i].as<float>()[0] = float(value);
  }
  return session->run(inputs, outputs, wanted);
}

Expected<StepReport> TrainingRun::run(int64_t number) {
  StepReport report;
  report.step = number;
  report.learningRate = rate.at(number);
  auto start = std::chrono::steady_clock::now();
  HPC_RETURN_IF_ERROR(step(number, report.learningRate, Outputs::Ordinary));
  report.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (outputs.empty())
    return report;
  report.loss = numberOf(outputs[loss]);
  report.gradientNorm = numberOf(outputs[gradientNorm]);
  if (validTokens)
    report.validTokens = numberOf(outputs[*validTokens]);
  return report;
}

Expected<NamedArrays> TrainingRun::gradients(int64_t number) {
  HPC_RETURN_IF_ERROR(step(number, 0, Outputs::All));
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
