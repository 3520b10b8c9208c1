// The answer of a search as text and as JSON.
#pragma once

#include "passes/Search/Search.h"

namespace hpc::search {

/// The plan, the next best, the bound and what binds; every line ends.
std::string reportText(const Answer &answer);
/// The table alone.
std::string tableText(const Answer &answer);
/// {"devices": 8, "machine": "...", "candidates": 84, ..., "plans": [{"flags": "--dp=2", "seconds": 0.1, "memory": 1024, ...}]}
std::string answerJson(const Answer &answer);

} // namespace hpc::search
