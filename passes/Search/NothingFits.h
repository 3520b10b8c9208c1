// The error where no plan fits the memory: what would.
#pragma once

#include "passes/Search/CandidateTable.h"

namespace hpc::search {

/// Capacity: the smallest memory with which a plan of these devices fits, the smallest number of devices (of those that are tried) of which a
/// plan fits this memory, and the three plans that are nearest. All of them are compiled without code.
Status whatWouldFit(CandidateTable &table);

} // namespace hpc::search
