// A flag that would do nothing is a mistake.
#include "tools/running/TrainFlags.h"

#include "runtime/base/ByteSize.h"
#include "runtime/base/CountText.h"
#include "runtime/base/Hash.h"
#include "runtime/base/NumberText.h"
#include "runtime/train/LossScale.h"
#include "tools/ExitCode.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hpc {

static Status usageOfTraining(const std::string &message) { return Status::error(ErrorKind::Usage, message); }

TrainFlags readTrainFlags(const Arguments &arguments) {
  TrainFlags flags;
  flags.allowJump = arguments.has("new-schedule");
  flags.data = arguments.text("data");
  flags.evaluate = arguments.text("evaluate");
  flags.evaluateEvery = arguments.whole("eval-every").value_or(0);
  flags.evaluateSteps = arguments.whole("eval-steps");
  flags.metrics = arguments.text("metrics");
  flags.curve = arguments.text("lr-schedule");
  flags.steps = flags.runLength = arguments.whole("steps").value_or(0);
  flags.epochs = arguments.whole("epochs");
  flags.warmup = *arguments.whole("warmup");
  flags.curveSteps = arguments.whole("lr-steps");
  flags.byEpoch = arguments.text("lr-by") == "epoch";
  flags.rate = arguments.real("lr");
  flags.leastRate = arguments.real("min-lr");
  flags.mostSkipped = *arguments.whole("max-skipped");
  flags.power = arguments.real("lr-power");
  flags.lossScale = arguments.real("loss-scale");
  flags.seed = arguments.whole("seed");
  flags.checkpoints.folder = arguments.text("checkpoints");
  flags.checkpoints.keep = arguments.whole("keep").value_or(flags.checkpoints.keep);
  flags.checkpoints.keepEvery = arguments.whole("keep-every").value_or(0);
  flags.checkpoints.isAsync = arguments.has("save-async");
  flags.saveEvery = arguments.whole("save-every").value_or(0);
  flags.shardSize = arguments.text("shard-size");
  if (Expected<int64_t> bytes = parseByteSize(flags.shardSize); bytes.ok())
    flags.checkpoints.shardBytes = *bytes;
  flags.text = readTextFlags(arguments);
  flags.report = readReportFlags(arguments);
  return flags;
}

/// The first flag about steps that is given; null: none.
static const Flag *givenAboutSteps(const Arguments &arguments) {
  for (const char *group : {group::steps, group::lines})
    for (const Flag *flag : arguments.given(group))
      return flag;
  return nullptr;
}

/// The seed and the loss scale.
static Status checkNumbers(const TrainFlags &flags) {
  if (!flags.any() && (flags.seed || flags.lossScale))
    return usageOfTraining(std::string(flags.seed ? "--seed" : "--loss-scale") + " is about training; add --train");
  if (!flags.lossScale)
    return Status::success();
  int exponent = 0;
  bool isPower = std::isfinite(*flags.lossScale) && std::frexp(*flags.lossScale, &exponent) == 0.5;
  if (!isPower || *flags.lossScale < LossScale::least || *flags.lossScale > LossScale::most)
    return usageOfTraining("--loss-scale=" + numberText(*flags.lossScale) + " must be a power of two from 1 to 2^127");
  return Status::success();
}

static Status checkWarmup(const TrainFlags &flags) {
  const int64_t end = rateOf(flags).steps;
  if (flags.warmup <= end)
    return Status::success();
  return usageOfTraining("--warmup=" + std::to_string(flags.warmup) + " must be from 0 to the " + countText(end, flags.byEpoch ? "epoch" : "step") +
                         " of the curve");
}

Status checkTrainFlags(const Arguments &arguments, const TrainFlags &flags) {
  HPC_RETURN_IF_ERROR(checkNumbers(flags));
  if (!flags.any()) {
    for (auto [name, text] : {std::pair("--data", &flags.data), std::pair("--metrics", &flags.metrics),
                              std::pair("--save", &flags.save), std::pair("--load", &flags.load),
                              std::pair("--checkpoints", &flags.checkpoints.folder)})
      if (!text->empty())
        return usageOfTraining(std::string(name) + " is about training; add --train");
    if (!flags.text.given.empty())
      return usageOfTraining(flags.text.given[0] + " is about training; add --train");
    if (const Flag *flag = givenAboutSteps(arguments))
      return usageOfTraining(flag->dashed() + " is about training; add --train");
    return Status::success();
  }
  HPC_RETURN_IF_ERROR(checkTextFlags(arguments, !flags.onlyEvaluates()));
  if (flags.evaluateEvery > 0 && !flags.evaluates())
    return usageOfTraining("--eval-every is about --evaluate=FILE or a --split; add one, or leave --eval-every out");
  if (flags.evaluateSteps && !flags.evaluates())
    return usageOfTraining("--eval-steps is about --evaluate=FILE or a --split; add one, or leave --eval-steps out");
  if (flags.onlyEvaluates()) {
    if (!flags.gradients.empty())
      return usageOfTraining("--gradients is one backward step, and --evaluate none; give one of them");
    for (auto [name, text] : {std::pair("--data", &flags.data), std::pair("--metrics", &flags.metrics), std::pair("--save", &flags.save)})
      if (!text->empty())
        return usageOfTraining(std::string("--evaluate alone computes a loss; leave out ") + name + ", or add --train");
    if (const Flag *flag = givenAboutSteps(arguments))
      return usageOfTraining("--evaluate alone computes a loss; leave out " + flag->dashed() + ", or add --train");
    if (flags.seed || flags.lossScale)
      return usageOfTraining(std::string("--evaluate alone computes a loss; leave out ") + (flags.seed ? "--seed" : "--loss-scale") + ", or add --train");
    return Status::success();
  }
  if (flags.data.empty())
    return usageOfTraining(arguments.has("train") ? "--train needs --data=FILE" : flags.train ? "no --data=FILE is given: add it" : "--gradients needs --data=FILE");
  if (flags.train && !flags.gradients.empty())
    return usageOfTraining("--gradients is one backward step without an update; leave --train out");
  if (!flags.train) {
    if (!flags.save.empty() || !flags.metrics.empty())
      return usageOfTraining("--gradients writes gradients alone; leave out --save and --metrics, or use --train");
    if (const Flag *flag = givenAboutSteps(arguments))
      return usageOfTraining("--gradients is one backward step without an update; leave out " + flag->dashed() + ", or use --train");
    return Status::success();
  }
  if (flags.checkpoints.folder.empty())
    for (const char *name : {"save-every", "keep", "keep-every", "save-async", "shard-size"})
      if (arguments.has(name))
        return usageOfTraining(std::string("--") + name + " is about --checkpoints=FOLDER; add it, or leave --" + name + " out");
  if (Expected<int64_t> bytes = parseByteSize(flags.shardSize); !bytes.ok())
    return usageOfTraining("--shard-size=" + flags.shardSize + " " + bytes.status().message());
  if (!flags.rate)
    return usageOfTraining("no --lr is given, the learning rate; add it, as --lr=1e-4");
  if (!(*flags.rate >= 0 && *flags.rate <= std::numeric_limits<float>::max()))
    return usageOfTraining("--lr=" + numberText(*flags.rate) + " must be at least 0, and a number that f32 holds");
  if (flags.steps > 0 && flags.epochs)
    return usageOfTraining("--steps and --epochs both say how long the run is; give one of them");
  if (flags.steps < 1 && !flags.epochs)
    return usageOfTraining(toolName() == "hpc-train" ? "no --steps=N or --epochs=N is given: add one" : "--train needs --steps=N or --epochs=N");
  if (flags.curveSteps && flags.curve == "constant")
    return usageOfTraining("--lr-steps says where a curve ends, and --lr-schedule=constant has no end; leave it out, or use "
                 "another curve");
  if (flags.leastRate && flags.curve == "constant")
    return usageOfTraining("--min-lr is the end of a curve, and --lr-schedule=constant has no end; leave it out, or use another curve");
  if (flags.leastRate && !(*flags.leastRate >= 0 && *flags.leastRate <= *flags.rate))
    return usageOfTraining("--min-lr=" + numberText(*flags.leastRate) + " must be from 0 to --lr=" + numberText(*flags.rate));
  if (flags.byEpoch && flags.curve == "constant" && flags.warmup == 0)
    return usageOfTraining("--lr-by=epoch is about curve and warm-up, and the rate is constant without one; leave it out");
  if (flags.power && flags.curve != "polynomial")
    return usageOfTraining("--lr-power is of --lr-schedule=polynomial, and the curve is " + flags.curve + "; leave it out, or use that one");
  if (flags.power && !(std::isfinite(*flags.power) && *flags.power > 0))
    return usageOfTraining("--lr-power=" + numberText(*flags.power) + " must be a finite number above 0");
  HPC_RETURN_IF_ERROR(checkReportFlags(arguments, flags.report));
  return flags.epochs || flags.byEpoch ? Status::success() : checkWarmup(flags);
}

LearningRate rateOf(const TrainFlags &flags) {
  LearningRate rate;
  rate.peak = flags.rate.value_or(0);
  rate.curve = parseCurve(flags.curve).value_or(rate.curve);
  rate.warmup = flags.warmup;
  rate.byEpoch = flags.byEpoch;
  rate.steps = flags.curveSteps.value_or(flags.runLength);
  rate.power = flags.power.value_or(rate.power);
  rate.least = flags.leastRate.value_or(0);
  return rate;
}

Status resolveSteps(TrainFlags &flags, const StepData &data) {
  if (flags.epochs) {
    constexpr int64_t most = int64_t(1) << 40;
    if (*flags.epochs > most / data.count())
      return usageOfTraining("--epochs=" + std::to_string(*flags.epochs) + " of " + countText(data.count(), "step") +
                             " are more steps than can be counted; give fewer");
    flags.steps = data.stepsOf(*flags.epochs);
  }
  flags.runLength = flags.byEpoch ? data.epochOf(std::max<int64_t>(flags.steps - 1, 0)) + 1 : flags.steps;
  return flags.train ? checkWarmup(flags) : Status::success();
}

uint64_t fingerprint(const TrainFlags &flags) {
  const LearningRate rate = rateOf(flags);
  const double numbers[] = {double(flags.train), double(flags.allowJump), double(flags.steps), double(!flags.save.empty()),
                            double(!flags.gradients.empty()), rate.peak, double(rate.curve), double(rate.warmup),
                            double(rate.steps), rate.power, double(flags.seed.value_or(-1)),
                            double(flags.evaluates()), double(flags.evaluateEvery),
                            flags.lossScale.value_or(0), double(!flags.checkpoints.folder.empty()), double(flags.saveEvery),
                            double(flags.checkpoints.isAsync), double(flags.checkpoints.shardBytes), double(flags.epochs.value_or(0)),
                            double(flags.byEpoch), rate.least, double(flags.mostSkipped), double(flags.evaluateSteps.value_or(0))};
  return hashBytes(reinterpret_cast<const std::byte *>(numbers), sizeof(numbers));
}

} // namespace hpc
