// The degrees of a request and the arrangement of its tensor axis, from flags and sidecar. Flags beat the file one by one; `--tp` with other sizes than the file's keeps
// the file's layout without its sizes.
#pragma once

#include "passes/Driver/Compilation.h"

namespace hpc {

/// Fills in the degrees and the layout of `request.options`. Errors (usage): those of dist::resolveDegrees and of passes/Annotate/LayoutStrategy.h.
/// Errors (usage): the machine of the options has fewer ranks.
Status checkRanksOfMachine(const Options &options, int64_t ranks);

Status takeDegrees(CompileRequest &request, const std::optional<SpecFile> &spec);

} // namespace hpc
