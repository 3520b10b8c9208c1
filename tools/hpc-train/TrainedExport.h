// The trained model as other tools open it, at the end of a run.
#pragma once

#include "runtime/base/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace hpc {

struct TrainedExport {
  std::string model;      ///< the .onnx that was trained
  std::string checkpoint; ///< its weights
  std::string pretrained; ///< folder of Hugging Face that training began with; "" = none
  std::string tokenizer;  ///< of the data; "" = none
  bool followLinks = false;
  int64_t shardBytes = 0; ///< most in one file of a folder
};

/// `to` is a new .onnx, or a folder. Prints notes; errors are those of passes/Driver/TrainedOnnx.h and TrainedFolder.h.
Status exportTrainedOnnx(const TrainedExport &from, const std::string &to);
Status exportTrainedFolder(const TrainedExport &from, const std::string &to);

} // namespace hpc
