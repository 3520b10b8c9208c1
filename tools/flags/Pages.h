// Texts made from the table of flags: help, manual page, completion for bash.
#pragma once

#include "tools/flags/FlagTable.h"

namespace hpc {

/// "--tp=N", "--verify[=INPUTS.npz]", "--dim NAME=N", "-o PLAN".
std::string spelling(const Flag &flag);

/// The text of --help; no line is longer than 120 columns except those of `tool`.
std::string helpText(const ToolText &tool, const std::vector<Flag> &flags);
/// In roff with the macros man(7).
std::string manualPage(const ToolText &tool, const std::vector<Flag> &flags);
/// A script that completes flags and values; zsh takes it after `autoload bashcompinit && bashcompinit`.
std::string completionScript(const ToolText &tool, const std::vector<Flag> &flags);

} // namespace hpc
