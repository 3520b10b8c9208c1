// The trained model as a file of ONNX: the original one with new elements, all else as it is byte for byte.
#pragma once

#include "passes/Driver/TrainedModel.h"

namespace hpc {

/// Writes `model` with the trained tensors as `destination`; where the model has external data, they are in one file `destination`.data beside it. Both files get
/// their names when they are whole, the data first. Memory: the structure of the model and a few MiB; mapped files besides. Returns notes for people. Errors: those
/// of TrainedModel::open; a destination that the model itself lies in; external data that stay and are not there.
Expected<std::vector<std::string>> writeTrainedOnnx(const std::string &model, const TrainedWeights &weights, const std::string &destination);

} // namespace hpc
