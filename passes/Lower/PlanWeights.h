// The plan's tables of weight files and stored tensors, shared by all stages.
#pragma once

#include "compiler/Dialect/NN/NN.h"
#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"

namespace hpc {

class PlanWeights {
public:
  PlanWeights(plan::Plan &plan, std::string planFolder) : plan(plan), planFolder(std::move(planFolder)) {}

  /// The index of a parameter's stored tensor; one entry however many stages use it.
  int32_t weight(nn::ParameterOp op);
  /// The same for a constant that is no part of a kernel.
  int32_t constant(nn::ConstantOp op);

private:
  int32_t file(StringRef path);
  int32_t inlineWeight(const std::string &name, ElementsAttr value);

  plan::Plan &plan;
  std::string planFolder;
  std::map<std::string, int32_t> weightIndex, fileIndex;
};

} // namespace hpc
