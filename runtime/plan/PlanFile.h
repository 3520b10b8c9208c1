// Reads and writes plan files. A plan that comes out of the reader has passed checkStructure and checkRanges
// (PlanStructure.h, CheckRanges in PlanCheck.h): nothing in it points outside anything, so the executor need not look
// again.
#pragma once

#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"

#include <string>
#include <string_view>

namespace hpc::plan {

/// Errors are of kind Io (cannot be read) or Plan (not a plan, another major version, truncated, corrupt,
/// inconsistent), and start with the file's name.
Expected<Plan> readPlan(const std::string &path);
/// The same for bytes in memory; `name` stands for the file in errors.
Expected<Plan> parsePlan(std::string_view bytes, const std::string &name);

/// The file's bytes. The same plan gives the same bytes.
std::string serializePlan(const Plan &plan);
/// Writes to a temporary file beside `path` and renames it, so that a reader sees the old file or the whole new one.
Status writePlan(const Plan &plan, const std::string &path);

/// The body of a file (a proto::Plan) and the envelope round it: what tests and fuzzers take apart to reach the reader
/// behind the hash.
Expected<std::string> openEnvelope(std::string_view bytes, const std::string &name);
std::string sealEnvelope(const std::string &body, Version version = newestVersion);

} // namespace hpc::plan
