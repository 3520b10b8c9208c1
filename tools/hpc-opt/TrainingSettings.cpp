// Of an optimizer only what it reads.
#include "tools/hpc-opt/TrainingSettings.h"

#include "passes/Train/Ports.h"
#include "runtime/base/NumberText.h"

namespace hpc {

std::vector<plan::Setting> trainingSettings(ModuleOp module, const Options &options, std::optional<double> dropout) {
  if (!options.trains())
    return {};
  auto loss = module->getAttrOfType<StringAttr>(train::lossAttrName);
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
  if (!options.freeze.empty())
    all.push_back({"freeze", options.freeze});
  if (options.narrowsProducts())
    all.push_back({"dtype", options.dtype});
  if (options.deterministic)
    all.push_back({"sums", "deterministic"});
  if (dropout)
    all.push_back({"dropout", numberText(*dropout)});
  return all;
}

} // namespace hpc
