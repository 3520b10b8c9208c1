// Only the settings that the optimizer reads.
#include "passes/Driver/TrainingSettings.h"

#include "compiler/Dialect/NN/NN.h"
#include "compiler/Dialect/NN/Ports.h"
#include "compiler/ModuleAttributes.h"
#include "runtime/base/CountText.h"
#include "runtime/base/Hash.h"
#include "runtime/base/NumberText.h"

#include "llvm/ADT/StringExtras.h"

#include <set>

namespace hpc {

/// "16 parameters (1A2B3C4D)": how many a step writes, and a hash of their names; --freeze and a sidecar may say the same.
static std::string trainedText(ModuleOp module) {
  std::set<std::string> trained;
  if (auto function = module.lookupSymbol<func::FuncOp>("main")) {
    std::map<std::string, unsigned> written = nn::writtenBy(function);
    function.walk([&](nn::ParameterOp op) {
      if (written.count(op.getName().str()))
        trained.insert(op.getName().str());
    });
  }
  std::string names;
  for (const std::string &name : trained)
    names += name + '\n';
  return countText(int64_t(trained.size()), "parameter") + " (" + llvm::utohexstr(uint32_t(hashBytes(names.data(), int64_t(names.size())))) + ")";
}

std::vector<plan::Setting> trainingSettings(ModuleOp module, const Options &options, std::optional<double> dropout) {
  if (!options.trains())
    return {};
  auto loss = module->getAttrOfType<StringAttr>(lossAttrName);
  std::vector<plan::Setting> all = {{"loss", loss ? loss.getValue().str() : options.loss}, {"optimizer", options.optimizer}};
  if (options.optimizer == "sgd") {
    all.push_back({"momentum", numberText(options.momentum) + (options.nesterov ? " (Nesterov)" : "")});
  } else {
    all.push_back({"betas", numberText(options.beta1) + "," + numberText(options.beta2)});
    all.push_back({"epsilon", numberText(options.epsilon)});
  }
  all.push_back({"weight_decay", numberText(options.weightDecay)});
  if (options.weightDecay != 0)
    all.push_back({"decay", options.decay});
  if (options.clip != 0)
    all.push_back({"clip", numberText(options.clip)});
  all.push_back({"trained", trainedText(module)});
  if (options.narrowsProducts())
    all.push_back({"dtype", options.dtype});
  if (options.deterministic)
    all.push_back({"sums", "deterministic"});
  if (dropout)
    all.push_back({"dropout", numberText(*dropout)});
  return all;
}

} // namespace hpc
