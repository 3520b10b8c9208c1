// --auto and --rank-layouts, as a question to the search.
#pragma once

#include "passes/Search/Search.h"
#include "tools/flags/Arguments.h"

namespace hpc {

/// Whether the flags want a search.
bool searchesPlan(const Arguments &arguments);

/// `request`: of the same flags. Errors (usage): no --devices.
Expected<search::Question> readQuestion(const Arguments &arguments, const CompileRequest &request);

} // namespace hpc
