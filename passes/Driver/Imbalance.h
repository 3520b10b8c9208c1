// Degrees that leave ranks with less to do than others, which is right and no use.
#pragma once

#include "runtime/plan/Plan.h"

namespace hpc {

/// A sentence for each axis of which some parts hold no element of any weight, state or input that is cut along it, or of which
/// the fullest holds more than twice the average: "1 of the 9 parts of --dp=9 has nothing ...".
std::vector<std::string> imbalances(const plan::Plan &plan);

} // namespace hpc
