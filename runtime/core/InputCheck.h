// Inputs are checked whole before anything of a step is done: what is wrong with one is said of the user's array, not of
// a buffer of some rank.
#pragma once

#include "runtime/base/Array.h"
#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"

namespace hpc {

/// Whether an array has the type, shape and bytes of a port.
bool fits(const Array &array, const plan::Port &port);
/// Whether an array that fits a port holds only numbers that name something where it is looked up by them; an error of
/// kind Usage names the first that does not.
Status checkLookups(const plan::Port &port, const Array &array);
/// One array for each input of the plan, which fits it and passes checkLookups. Errors are of kind Usage.
Status checkInputs(const plan::Plan &plan, const std::vector<Array> &inputs);

} // namespace hpc
