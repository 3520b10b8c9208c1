// The one table of the flags of all tools. Parser, --help, manual pages, completion in the shell, --config and "this is a flag of
// another tool" come from it, so that a new flag is one row.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace hpc {

/// A set: a row of the table names all tools that have the flag.
enum Tool : unsigned { HpcOpt = 1, HpcRun = 2, HpcPlan = 4, HpcTrain = 8, HpcCalibrate = 16, HpcGenerate = 32, AllTools = HpcOpt | HpcRun | HpcPlan | HpcTrain | HpcCalibrate | HpcGenerate };

struct ToolText {
  Tool tool;
  std::string name, purpose; ///< "hpc-run", "runs plans"
  std::string description;
  std::vector<std::string> usage, examples;
  std::vector<std::string> config; ///< lines of a file of --config, for the manual page
  std::string footer; ///< of the text of --help
};
const std::vector<ToolText> &toolTexts();
const ToolText &textOf(Tool tool);

/// Groups of flags, in which help prints them. Code that treats a group alike refers to it by these names.
namespace group {
constexpr const char *run = "Run", *texts = "Prompts and answers", *choice = "Choice of the next token", *model = "Model and plan", *training = "Training", *data = "Data", *layout = "Layout", *report = "Explanation and verification", *trained = "Trained weights",
                     *phases = "Phase by phase", *arrays = "Inputs, outputs and weights", *steps = "Steps and learning rate", *lines = "Lines and metrics",
                     *measures = "Measurement", *host = "Host", *gpus = "GPUs (--backend=cuda)", *processes = "Several processes",
                     *output = "Output", *general = "General";
} // namespace group

/// The type of a flag's value. Each function below changes one thing of it.
struct FlagValue {
  enum class Kind { Switch, Text, Whole, Real };
  Kind kind = Kind::Switch;
  std::string name;                 ///< in help: "N", "FILE"; "" of a switch
  std::vector<std::string> choices; ///< the shell offers them
  bool isOneOf = false;             ///< one of `choices` and nothing else
  bool isOptional = false;          ///< as in --explain and --explain=json
  bool isRepeated = false;
  bool isPositional = false;
  bool isFile = false, isFolder = false;
  int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max(); ///< of a whole number
  double above = -std::numeric_limits<double>::infinity();                                         ///< of a real number; NaN too where infinite
  bool withBound = false;                                                                          ///< `above` itself, too
  std::string fallback;                                                                            ///< the value where none is given

  FlagValue orElse(std::string value) const { return with([&](FlagValue &next) { next.fallback = std::move(value); }); }
  FlagValue offers(std::vector<std::string> some) const { return with([&](FlagValue &next) { next.choices = std::move(some); }); }
  FlagValue repeated() const { return with([](FlagValue &next) { next.isRepeated = true; }); }
  FlagValue optional() const { return with([](FlagValue &next) { next.isOptional = true; }); }
  FlagValue positional() const { return with([](FlagValue &next) { next.isPositional = true; }); }

  /// "is not a whole number from 1 to 8": the fault of a text as a value; "" where there is none.
  std::string wrong(const std::string &text) const;

private:
  template <typename Change> FlagValue with(Change change) const {
    FlagValue next = *this;
    change(next);
    return next;
  }
};

struct Flag {
  std::string name; ///< without dashes; the key in a file of --config
  FlagValue value;
  std::string help; ///< a noun phrase; the value's default is printed after it
  std::string group;
  unsigned tools;
  std::string alias = ""; ///< another name; of one letter: -o

  bool isNamed(const std::string &text) const { return text == name || (!alias.empty() && text == alias); }
  /// "-o" where there is one letter, else "--output": the form in messages.
  std::string dashed() const { return alias.size() == 1 ? "-" + alias : "--" + name; }
  /// The help with default and "may be repeated".
  std::string fullHelp() const;
};

/// The flags that say otherwise what this one says: given by the user, they take the place of the one in a file of --config.
std::vector<std::string> alternativesOf(const std::string &name);

/// The flags of a tool, in the order of help. No tool has two of one name.
std::vector<Flag> flagsOf(Tool tool);

} // namespace hpc
