// Settings that a curve does not depend on are left out: a constant rate has no end, so a run may be cut anywhere.
#include "runtime/train/RunConfiguration.h"

#include "runtime/base/CountText.h"
#include "runtime/base/NumberText.h"

#include <set>

namespace hpc {

static const std::string prefix = "run.";

std::map<std::string, std::string> configurationOf(const plan::Plan &plan, const StepData &data, const LearningRate &rate) {
  std::map<std::string, std::string> all;
  for (const plan::Setting &setting : plan.training)
    all[prefix + setting.name] = setting.value;
  all[prefix + "lr"] = numberText(rate.peak);
  all[prefix + "lr_schedule"] = name(rate.curve);
  all[prefix + "warmup"] = std::to_string(rate.warmup);
  if (rate.curve != LearningRateCurve::Constant)
    all[prefix + "lr_steps"] = std::to_string(rate.steps);
  if (rate.curve == LearningRateCurve::Polynomial)
    all[prefix + "lr_power"] = numberText(rate.power);
  if (rate.least != 0)
    all[prefix + "min_lr"] = numberText(rate.least);
  if (rate.byEpoch)
    all[prefix + "lr_by"] = "epoch";
  all[prefix + "data"] = data.summary();
  return all;
}

bool hasConfiguration(const std::map<std::string, std::string> &metadata) {
  auto first = metadata.lower_bound(prefix);
  return first != metadata.end() && first->first.compare(0, prefix.size(), prefix) == 0;
}

std::vector<std::string> differences(const std::map<std::string, std::string> &saved, const std::map<std::string, std::string> &mine) {
  std::set<std::string> names;
  for (const auto *side : {&saved, &mine})
    for (const auto &[key, value] : *side)
      if (key.compare(0, prefix.size(), prefix) == 0)
        names.insert(key);
  auto valueOf = [](const std::map<std::string, std::string> &side, const std::string &key) {
    auto found = side.find(key);
    return found == side.end() ? std::string("none") : found->second;
  };
  std::vector<std::string> texts;
  for (const std::string &key : names)
    if (const std::string before = valueOf(saved, key), now = valueOf(mine, key); before != now)
      texts.push_back(key.substr(prefix.size()) + ": " + before + " -> " + now);
  return texts;
}

Expected<LearningRate> learningRateOf(const std::map<std::string, std::string> &metadata, const std::string &path) {
  auto read = [&](const char *key, auto &value) {
    auto found = metadata.find(prefix + key);
    if (found == metadata.end())
      return true;
    const std::string &text = found->second;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
  };
  LearningRate rate;
  auto curve = metadata.find(prefix + "lr_schedule");
  std::optional<LearningRateCurve> named = curve == metadata.end() ? std::nullopt : parseCurve(curve->second);
  if (!named || !metadata.count(prefix + "lr") || !read("lr", rate.peak) || !read("warmup", rate.warmup) || !read("lr_steps", rate.steps) ||
      !read("lr_power", rate.power) || !read("min_lr", rate.least))
    return Status::error(ErrorKind::Io, "'" + path + "': its metadata have no learning rate that could be: '" + prefix + "lr', '" + prefix +
                                            "lr_schedule' and the like; give a file as hpc-run --save wrote it");
  rate.curve = *named;
  rate.byEpoch = metadata.count(prefix + "lr_by") > 0;
  return rate;
}

std::string flagsOf(const LearningRate &rate) {
  std::string text = "--lr=" + numberText(rate.peak) + " --lr-schedule=" + name(rate.curve);
  if (rate.warmup > 0)
    text += " --warmup=" + std::to_string(rate.warmup);
  if (rate.curve != LearningRateCurve::Constant)
    text += " --lr-steps=" + std::to_string(rate.steps);
  if (rate.curve == LearningRateCurve::Polynomial)
    text += " --lr-power=" + numberText(rate.power);
  if (rate.least != 0)
    text += " --min-lr=" + numberText(rate.least);
  return rate.byEpoch ? text + " --lr-by=epoch" : text;
}

} // namespace hpc
