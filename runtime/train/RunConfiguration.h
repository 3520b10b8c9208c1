// The settings of a training run, by name, as the metadata of its checkpoints hold them: the options of the plan, the
// learning rate, the data. A run with another layout is the same run; with other settings of these it is not.
#pragma once

#include "runtime/plan/Plan.h"
#include "runtime/train/LearningRate.h"
#include "runtime/train/StepData.h"

#include <map>

namespace hpc {

/// Keys begin with "run.": run.optimizer, run.betas, ..., run.lr, run.lr_schedule, run.warmup, run.lr_steps, run.min_lr, run.lr_by, run.data.
std::map<std::string, std::string> configurationOf(const plan::Plan &plan, const StepData &data, const LearningRate &rate);

/// Whether a checkpoint's metadata have any of it; those of older releases do not.
bool hasConfiguration(const std::map<std::string, std::string> &metadata);

/// "betas: 0.9,0.999 -> 0.9,0.95" of each setting that a checkpoint and this run do not have alike, by name.
std::vector<std::string> differences(const std::map<std::string, std::string> &saved, const std::map<std::string, std::string> &mine);

/// The learning rate of the checkpoint at `path`. Errors: its metadata have none, or numbers that cannot be.
Expected<LearningRate> learningRateOf(const std::map<std::string, std::string> &metadata, const std::string &path);

/// The flags of hpc-run that give it: "--lr=0.001 --lr-schedule=cosine --warmup=2 --lr-steps=10".
std::string flagsOf(const LearningRate &rate);

} // namespace hpc
