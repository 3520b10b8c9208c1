// Right after import, before anything is made of a dropout: sites stay as they are numbered.
#include "passes/Driver/DropoutRate.h"

#include "compiler/Dialect/NN/NN.h"

namespace hpc {

Status setDropoutRate(ModuleOp module, double rate) {
  SmallVector<nn::DropoutOp> dropouts;
  module.walk([&](nn::DropoutOp op) { dropouts.push_back(op); });
  if (dropouts.empty())
    return Status::error(ErrorKind::Model,
                         "--dropout: the model has no Dropout node in training mode, and where it would have some is not "
                         "known: exporters leave them out of a model in eval mode. Export it in training mode: "
                         "torch.onnx.export(model.train(), ..., training=torch.onnx.TrainingMode.TRAINING, "
                         "do_constant_folding=False, dynamo=False)");
  for (nn::DropoutOp op : dropouts) {
    if (rate > 0) {
      op.setRate(APFloat(rate));
      continue;
    }
    op.getResult().replaceAllUsesWith(op.getOperand());
    op.erase();
  }
  return Status::success();
}

} // namespace hpc
