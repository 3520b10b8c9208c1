// The formulas of the optimizers, for one parameter: PyTorch's (torch.optim, 2.x), and for LAMB You et al. 2020, algorithm 2
// with phi(x) = x. Every number that is the same for all parameters is computed once a step, in f64, from the step
// scalars `lr` and `update` (1 in the first step that is not skipped): 1 - beta^update in f32 would lose all digits of a beta near 1.
#pragma once

#include "passes/Train/StepFunction.h"

namespace hpc::train {

enum class OptimizerKind { Sgd, Adam, AdamW, Lamb };

std::optional<OptimizerKind> optimizerKind(StringRef name);
/// "sgd, adam, adamw, lamb"
std::string optimizerNames();

struct OptimizerRecipe {
  OptimizerKind kind = OptimizerKind::AdamW;
  double momentum = 0; ///< sgd; 0: no state
  bool nesterov = false;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8; ///< all but sgd
};

/// Makes the updates of one step.
class Optimizer {
public:
  Optimizer(StepFunction &step, const OptimizerRecipe &recipe) : step(step), recipe(recipe) {}

  /// The next values of a parameter and its states.
  struct Update {
    struct State {
      std::string name;
      Value old, next;
    };
    Value parameter;
    SmallVector<State> states;
  };
  /// `parameter` and `gradient` have the type of the update (updateType), and so have the states.
  Update update(StringRef name, Value parameter, Value gradient, double weightDecay);

private:
  struct Shared {
    Value learningRate; ///< lr
    Value rootOfCorrection2; ///< sqrt(1 - beta2^update)
    Value correction1; ///< 1 - beta1^update
    Value stepSize; ///< lr / (1 - beta1^update)
  };
  const Shared &shared(Type type);
  Value state(Update &update, StringRef kind, StringRef name, Value parameter);
  Update updateSgd(StringRef name, Value parameter, Value gradient, double weightDecay);
  Update updateAdam(StringRef name, Value parameter, Value gradient, double weightDecay);
  Update updateLamb(StringRef name, Value parameter, Value gradient, double weightDecay);
  struct Moments {
    Value first, root; ///< m and sqrt(v / (1 - beta2^update)) + eps
  };
  Moments moments(Update &update, StringRef name, Value parameter, Value gradient);

  StepFunction &step;
  const OptimizerRecipe recipe;
  llvm::DenseMap<Type, Shared> sharedByType;
};

} // namespace hpc::train
