// Registration of the propagate passes for the harness; a file of its own, as the generated registrations of two phases
// share local names.
#include "passes/Propagate/Passes.h"

namespace hpc::test {
void registerPropagate() { registerPropagatePasses(); }
} // namespace hpc::test
