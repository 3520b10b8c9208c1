// The files that --data names: one, several by commas, all that a pattern matches, with weights or without.
#pragma once

#include "runtime/base/Status.h"

#include <string>
#include <vector>

namespace hpc::text {

struct DataFiles {
  std::vector<std::string> paths; ///< in order; those of a pattern by name
  std::string weight;             ///< as written; "" where none is
};

/// "a.jsonl", "data/*.jsonl", "a.bin,b.bin": one group of files. "a.jsonl=0.7,b/*.jsonl=0.3": a group for each weight. A file that exists under the
/// whole name is that file, whatever signs are in it. A pattern leaves out tokens that are kept beside a text which it matches.
/// Errors (Usage): no match; a part without a name; weights for some and not for others.
Expected<std::vector<DataFiles>> dataFilesOf(const std::string &names);

} // namespace hpc::text
