// A fault of a program as a test case, and how the functions that break programs find and change ops.
// The tests that run over all cases stand in ProgramFaults.cpp; a file with more of them only instantiates them.
#pragma once

#include "test/faults/Compilation.h"

#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/NN.h"
#include "compiler/Location.h"

#include <gtest/gtest.h>

namespace hpc::test {

/// A way of breaking a program, and who finds it.
struct FaultOfProgram {
  const char *name;
  Layout (*layout)();
  const char *phase; ///< the phase after which the program is broken
  void (*breakIt)(ModuleOp);
  std::vector<const char *> verifyPass; ///< what the verify pass says; empty: it cannot see it
  std::vector<const char *> verify;     ///< what --verify says without that pass; empty: the fault does no harm
};

inline void PrintTo(const FaultOfProgram &fault, std::ostream *out) { *out << fault.name; }
class ProgramFault : public testing::TestWithParam<FaultOfProgram> {};

// ---- finding and changing ops -------------------------------------------------------------------

/// The ops of a kind that stem from one ONNX node, in program order.
template <typename OpT> SmallVector<OpT> all(ModuleOp module, StringRef node) {
  SmallVector<OpT> found;
  module.walk([&](OpT op) {
    if (nodeName(op.getLoc()) == node)
      found.push_back(op);
  });
  return found;
}
template <typename OpT> OpT the(ModuleOp module, StringRef node, size_t index = 0) {
  SmallVector<OpT> found = all<OpT>(module, node);
  if (index >= found.size()) {
    module.dump();
    ADD_FAILURE() << "no such op at " << node.str() << "; the test is out of date";
    std::exit(1);
  }
  return found[index];
}

inline dist::Sharding sharding(const char *text) { return *dist::parseSharding(text); }
inline dist::ShardingAttr attr(ModuleOp module, const char *text) {
  return dist::ShardingAttr::get(module.getContext(), sharding(text));
}
/// Says another sharding of the same box: a lie that no shape gives away.
inline void claim(Value value, const dist::Sharding &sharding) {
  value.setType(dist::withSharding(cast<RankedTensorType>(value.getType()), sharding));
}
inline nn::ParameterOp parameter(ModuleOp module, StringRef name) {
  nn::ParameterOp found;
  module.walk([&](nn::ParameterOp op) {
    if (op.getName() == name)
      found = op;
  });
  return found;
}

} // namespace hpc::test
