// A fault of a plan as a test case, and how the functions that break plans find instructions.
// The test that runs over all cases stands in PlanFaults.cpp; a file with more of them only instantiates it.
#pragma once

#include "test/faults/Compilation.h"

#include "runtime/plan/PlanNames.h"

#include <gtest/gtest.h>

namespace hpc::test {

/// A way of breaking a plan, and who finds it.
struct FaultOfPlan {
  const char *name;
  void (*breakIt)(plan::Plan &);
  std::vector<const char *> check;  ///< what checkPlan says; empty: it cannot see it
  std::vector<const char *> verify; ///< then, what --verify says
  Layout (*layout)() = oddLayout;
};
inline void PrintTo(const FaultOfPlan &fault, std::ostream *out) { *out << fault.name; }
class PlanFault : public testing::TestWithParam<FaultOfPlan> {};

// ---- finding instructions -----------------------------------------------------------------------

inline plan::Program &program(plan::Plan &plan, int stage, const std::string &name) {
  for (plan::Program &program : plan.stages[stage].programs)
    if (programText(program) == name)
      return program;
  ADD_FAILURE() << "no program " << name;
  std::exit(1);
}

/// The number of the first instruction of a kind, of one ONNX node unless `node` is empty.
template <typename ActionT> size_t find(const plan::Program &program, const std::string &node = "") {
  for (size_t i = 0; i < program.instructions.size(); ++i)
    if (std::holds_alternative<ActionT>(program.instructions[i].action) &&
        (node.empty() || program.instructions[i].node == node))
      return i;
  ADD_FAILURE() << "no such instruction at " << node << "; the test is out of date";
  std::exit(1);
}
template <typename ActionT>
ActionT &the(plan::Plan &plan, int stage, const std::string &name, const std::string &node = "") {
  plan::Program &where = program(plan, stage, name);
  return std::get<ActionT>(where.instructions[find<ActionT>(where, node)].action);
}

} // namespace hpc::test
