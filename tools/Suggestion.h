// What a misspelt flag was meant to be; the three tools answer alike.
#pragma once

#include "runtime/base/Nearest.h"

namespace hpc {

/// "there is no --tpp; did you mean --pp or --tp?", or, where nothing is near, "there is no --x; see hpc-run --help".
/// `given` and `flags` begin with their dashes; a value after '=' is left out of `given`.
inline std::string unknownFlag(const std::string &tool, const std::string &given, std::vector<std::string> flags) {
  std::vector<std::string> nearest = nearestNames(given, std::move(flags));
  return "there is no " + given +
         (nearest.empty() ? "; see " + tool + " --help" : "; did you mean " + anyOf(nearest, "") + "?");
}

} // namespace hpc
