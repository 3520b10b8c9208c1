// Batches count by their valid tokens, so the loss is that of all rows in one batch.
#include "runtime/train/Evaluation.h"

#include "runtime/base/ArrayElements.h"
#include "runtime/plan/Entries.h"
#include "runtime/plan/StepPorts.h"
#include "runtime/train/ReadAhead.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace hpc {

std::optional<double> EvaluationReport::perplexity() const {
  return validTokens ? std::optional<double>(std::exp(loss)) : std::nullopt;
}

Expected<size_t> evaluationEntry(const plan::Plan &plan) {
  Expected<size_t> found = plan::findEntry(plan, plan::evaluateEntry);
  if (!found.ok())
    return Status::error(ErrorKind::Usage, found.status().message() + "; compile the model with hpc-opt --train --evaluate");
  return found;
}

Expected<Evaluation> Evaluation::create(size_t entry, Session &session, const StepData &data, int64_t most) {
  Evaluation evaluation(entry, session, data, most);
  const plan::Plan &plan = session.entry(entry);
  bool hasLoss = false;
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    if (plan.outputs[i].name == plan::lossName && plan.outputs[i].shape.empty()) {
      evaluation.loss = i;
      hasLoss = true;
    } else if (plan.outputs[i].name == plan::validTokensName) {
      evaluation.validTokens = i;
    }
  }
  if (!hasLoss)
    return Status::error(ErrorKind::Usage, "the plan's entry 'evaluate' has no scalar output 'loss'; compile the model with hpc-opt --train --evaluate");
  for (const plan::Port &port : plan.inputs) {
    // Step 0 trains nothing, and no dropout drops anything in it, whatever the seed.
    if (port.isStepScalar && port.name != plan::stepName && port.name != plan::seedName)
      return Status::error(ErrorKind::Unsupported, "the plan's entry 'evaluate' needs step scalar '" + port.name +
                                                       "', which this hpc-run does not know; it is older than the plan");
    evaluation.inputs.push_back(port.isStepScalar ? Array::zeros(port.dtype, {}) : Array());
  }
  return evaluation;
}

Expected<EvaluationReport> Evaluation::run() {
  EvaluationReport report;
  report.batches = std::min(data->count(), most);
  const auto start = std::chrono::steady_clock::now();
  double sum = 0, weight = 0;
  ReadAhead ahead(*data);
  for (int64_t batch = 0; batch < report.batches; ++batch) {
    HPC_RETURN_IF_ERROR(ahead.take(batch, inputs));
    HPC_RETURN_IF_ERROR(session->run(entry, inputs, outputs));
    if (outputs.empty())
      continue;
    const double counts = validTokens ? numberAt(outputs[*validTokens], 0) : 1;
    sum += counts > 0 ? numberAt(outputs[loss], 0) * counts : 0;
    weight += counts;
  }
  report.loss = sum / weight;
  if (validTokens)
    report.validTokens = weight;
  report.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return report;
}

} // namespace hpc
