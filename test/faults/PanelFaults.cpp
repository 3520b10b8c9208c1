// Ways of breaking the panels of a product (hpc-panel-products): what only computes something else is found by running the plan,
// what reads outside of a buffer by the plan's check.
#include "test/faults/PlanFault.h"

using namespace hpc;
using namespace hpc::plan;
using namespace hpc::test;

namespace {

Layout panelLayout(const char *shape, int64_t ranks) {
  Layout layout = mlpLayout();
  layout.options.degrees = dist::degreesOf({{"tp", ranks}});
  layout.options.tpLayout = shape;
  layout.options.panels = true;
  return layout;
}
Layout squarePanels() { return panelLayout("2d:3x3", 9); }
Layout oblongPanels() { return panelLayout("2d:2x3", 6); }

/// The instructions of a kind for one product, in order.
template <typename Action> std::vector<Action *> ofProduct(Plan &plan, bool (*is)(const Action &)) {
  std::vector<Action *> found;
  std::string node;
  for (Instruction &instruction : program(plan, 0, "forward").instructions)
    if (auto *action = std::get_if<Action>(&instruction.action); action && is(*action) && (node.empty() || node == instruction.node)) {
      node = instruction.node;
      found.push_back(action);
    }
  EXPECT_GE(found.size(), 2u);
  return found;
}
std::vector<Gemm *> laterPanels(Plan &plan) {
  return ofProduct<Gemm>(plan, [](const Gemm &gemm) { return isEverywhere(gemm.addToC, 1); });
}
std::vector<Collective *> exchanges(Plan &plan) {
  return ofProduct<Collective>(plan, [](const Collective &collective) { return collective.kind == CollectiveKind::Permute; });
}

void leaveOutPanel(Plan &plan) { laterPanels(plan)[0]->k = 0; }
void forgetPanelsBefore(Plan &plan) { laterPanels(plan)[0]->addToC = 0; }
/// Every rank has the panel that it would have without a skew, so those of two operands do not meet.
void noSkew(Plan &plan) {
  for (size_t rank = 0; rank < 9; ++rank)
    exchanges(plan)[0]->source.values[rank] = int64_t(rank % 3);
}
void samePanelTwice(Plan &plan) { exchanges(plan)[1]->source = exchanges(plan)[0]->source; }
/// The part that a product reads of an operand that is there whole.
std::vector<Gemm *> readers(Plan &plan) {
  return ofProduct<Gemm>(plan, [](const Gemm &gemm) { return !isEverywhere(gemm.a.offset, 0); });
}
void partOfAnotherPanel(Plan &plan) { readers(plan)[0]->a.offset = readers(plan)[1]->a.offset; }
void beyondTheLastPanel(Plan &plan) {
  for (int64_t &offset : readers(plan)[0]->a.offset.values)
    offset += int64_t(1) << 20;
}
void writesFromAnOffset(Plan &plan) { readers(plan)[0]->c.offset = 4; }
void betweenElements(Plan &plan) { readers(plan)[0]->a.offset.values[0] = 2; }

const FaultOfPlan panelFaults[] = {
    {"PanelLeftOut", leaveOutPanel, {}, {"plan differs at ONNX node"}, squarePanels},
    {"PanelsBeforeForgotten", forgetPanelsBefore, {}, {"plan differs at ONNX node"}, squarePanels},
    {"NoSkew", noSkew, {}, {"plan differs at ONNX node"}, squarePanels},
    {"SamePanelTwice", samePanelTwice, {}, {"plan differs at ONNX node"}, squarePanels},
    {"PartOfAnotherPanel", partOfAnotherPanel, {}, {"plan differs at ONNX node"}, oblongPanels},
    {"BeyondTheLastPanel", beyondTheLastPanel, {"gemm"}, {}, oblongPanels},
    {"WritesFromAnOffset", writesFromAnOffset, {"c has an offset; only a and b are read from one on"}, {}, oblongPanels},
    {"BetweenElements", betweenElements, {"offset of a has 2, not a multiple of the 4 bytes of an element"}, {}, oblongPanels},
};

INSTANTIATE_TEST_SUITE_P(Panels, PlanFault, testing::ValuesIn(panelFaults), [](const auto &info) { return std::string(info.param.name); });

} // namespace
