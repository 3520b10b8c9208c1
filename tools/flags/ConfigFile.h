// The file of --config: TOML with a key for each flag, which is the flag's long name.
#pragma once

#include "runtime/base/Status.h"
#include "tools/flags/FlagTable.h"

namespace hpc {

struct ConfigEntry {
  const Flag *flag;
  std::vector<std::string> values; ///< as on a command line; more than one where the flag may be repeated
};

/// In the order of `flags`. Errors: no file (io); no TOML, a key that is no flag of the tool or of another type than its flag (usage),
/// each with "FILE:LINE: ". An optional value that is false is left out.
Expected<std::vector<ConfigEntry>> readConfigFile(const std::string &path, const ToolText &tool, const std::vector<Flag> &flags);

} // namespace hpc
