// The folder of a run: config.toml, plan/, metrics.jsonl, log/, checkpoints/, trained.onnx.
#pragma once

#include "runtime/base/RunLock.h"
#include "runtime/plan/Plan.h"

#include <string>

namespace hpc {

struct RunFolder {
  std::string path; ///< without a '/' at its end

  std::string config() const { return path + "/config.toml"; }
  std::string planFolder() const { return path + "/plan"; }
  std::string plan() const { return planFolder() + "/train.plan"; }
  std::string metrics() const { return path + "/metrics.jsonl"; }
  std::string checkpoints() const { return path + "/checkpoints"; }
  std::string logs() const { return path + "/log"; }
  std::string trained() const { return path + "/trained.onnx"; }
  std::string huggingFace() const { return path + "/hf"; }

  /// That a new run may take it: nothing is there, or an empty folder. Errors: a run, which names --resume; other files.
  Status checkNew() const;
  /// That it holds a run. Errors: no such folder; no config.toml in it.
  Status checkRun() const;
  /// Makes the folder and takes it, so that there is one run in it. Errors: another run has it.
  Expected<RunLock> take() const;
  /// Takes away what take() and the logs of a run that did not begin have left.
  void clear() const;
  /// Makes the folder and writes how the run is called, and its plan. Replaces those of the run before.
  Status begin(const std::string &configText, const plan::Plan &plan) const;
};

/// "runs/gpt2-20261126-104500" for "models/gpt2.onnx".
std::string defaultRunFolder(const std::string &model);

} // namespace hpc
