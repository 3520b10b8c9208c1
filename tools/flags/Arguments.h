// The arguments of a tool, by the table of flags: from the command line, and from a file of --config where the command line has none.
#pragma once

#include "runtime/base/Status.h"
#include "tools/flags/FlagTable.h"

#include <functional>
#include <map>
#include <optional>

namespace hpc {

/// Flags that somebody else has beside ours, as LLVM in hpc-opt.
enum class Foreign { Unknown, Alone, TakesNext };

class Arguments {
public:
  std::function<Foreign(const std::string &word)> foreign = [](const std::string &) { return Foreign::Unknown; };
  std::vector<std::string> foreignWords; ///< those, and their values
  /// A second file of flags, "" where there is none: it counts where neither the command line nor --config has the flag.
  std::function<std::string(const Arguments &)> weakestConfig = [](const Arguments &) { return std::string(); };
  std::string page; ///< text requested by --help: print it and do nothing else
  std::string note; ///< flags that came from the file of --config; "" = none

  explicit Arguments(Tool tool) : tool(textOf(tool)), flags(flagsOf(tool)) {}

  /// Values that are known only at run time.
  void offer(const std::string &name, std::vector<std::string> choices);

  /// Returns the first error, unknown flags before others; the flags that are right can be read even so.
  Status parse(int argc, const char *const *argv);

  bool knows(const std::string &name) const;

  // For a flag of the table; one that this tool does not have is not given.

  /// Whether it is given. A switch that is turned off is not.
  bool has(const std::string &name) const;
  /// The given value, else the default; "" and nullopt if there is no default either.
  std::string text(const std::string &name) const;
  std::optional<int64_t> whole(const std::string &name) const;
  std::optional<double> real(const std::string &name) const;
  const std::vector<std::string> &all(const std::string &name) const;

  /// All that are given as the text of a file of --config, but for `without`.
  std::string configText(const std::vector<std::string> &without) const;

  /// Those of a group, or of all, that are given.
  std::vector<const Flag *> given(const std::string &group = "") const;

private:
  Status take(const std::vector<std::string> &words);
  Status takeConfig(const std::string &path, bool isTold);
  const Flag &flag(const std::string &name) const;
  const Flag *find(const std::string &name) const;

  const ToolText &tool;
  std::vector<Flag> flags;
  std::map<std::string, std::vector<std::string>> values; ///< by name of flag
};

/// "there is no --lr here: it is a flag of hpc-run, which runs plans; see hpc-run --help", "there is no --tpp; did you mean
/// --pp or --tp?", or, where nothing is near, "there is no --x; see hpc-run --help". `name` has no dashes; `dashes` go before it.
std::string unknownFlag(const ToolText &tool, const std::string &name, const std::string &dashes);

} // namespace hpc
