// The --input flags of hpc-run: files in, one array per input of the plan out.
// A missing or unknown input, or one of another type or shape, is an error; further arrays of an .npz are a note.
#pragma once

#include "runtime/base/Array.h"
#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"

#include <string>
#include <vector>

namespace hpc {

/// `flags` are FILE.npz or NAME=FILE.npy; the latter wins where both give an input. Arrays come in the order of the
/// plan's inputs. `notes` get one line per array that is ignored.
/// An array for an input that has a default becomes the content of that weight of the plan.
Expected<std::vector<Array>> readInputs(plan::Plan &plan, const std::vector<std::string> &flags,
                                        std::vector<std::string> &notes);

/// The file in such a flag; "" if it has none.
std::string fileOfInput(const std::string &flag);

} // namespace hpc
