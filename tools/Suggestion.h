// What a flag was meant to be that a tool does not have: one of another tool, or a misspelt one. The three tools answer alike.
#pragma once

#include "runtime/base/Nearest.h"
#include "tools/ToolFlags.h"

namespace hpc {

/// "hpc-run, which runs plans": the tools but `tool` that have the flag `name`, given without dashes; "" where there is none.
inline std::string otherToolsWith(const std::string &tool, std::string_view name) {
  std::string text;
  for (const ToolFlags &other : toolFlags())
    if (other.tool != tool && other.has(name))
      text += (text.empty() ? "" : ", and of ") + other.tool + ", which " + other.purpose;
  return text;
}

/// "there is no --lr here: it is a flag of hpc-run, which runs plans; see hpc-run --help", "there is no --tpp; did you mean
/// --pp or --tp?", or, where nothing is near, "there is no --x; see hpc-run --help". `given` and `flags` begin with their
/// dashes; a value after '=' is left out of `given`.
inline std::string unknownFlag(const std::string &tool, const std::string &given, std::vector<std::string> flags) {
  auto withoutDashes = [](const std::string &flag) { return flag.substr(std::min(flag.find_first_not_of('-'), flag.size())); };
  if (std::string others = otherToolsWith(tool, withoutDashes(given)); !others.empty())
    return "there is no " + given + " here: it is a flag of " + others + "; see " + others.substr(0, others.find(',')) + " --help";
  std::vector<std::string> nearest = nearestNames(given, std::move(flags));
  if (!nearest.empty())
    return "there is no " + given + "; did you mean " + anyOf(nearest, "") + "?";
  std::vector<std::string> theirs;
  for (const ToolFlags &other : toolFlags())
    for (std::string_view flag : other.flags)
      theirs.push_back("--" + std::string(flag));
  nearest = nearestNames(given, std::move(theirs));
  if (nearest.empty())
    return "there is no " + given + "; see " + tool + " --help";
  const std::string others = otherToolsWith(tool, withoutDashes(nearest[0]));
  return "there is no " + given + "; did you mean " + nearest[0] + " of " + others.substr(0, others.find(',')) + "?";
}

} // namespace hpc
