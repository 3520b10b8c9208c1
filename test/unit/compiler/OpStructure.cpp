// What ops say about themselves: no op of `nn` may leave a pass guessing, and what they say fits their rules.
#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/NN.h"

#include "gtest/gtest.h"

namespace hpc {
namespace {

struct OpStructure : testing::Test {
  MLIRContext context;
  OpStructure() { context.loadDialect<nn::NNDialect, dist::DistDialect, func::FuncDialect>(); }
};

// A new op that does not say how it reads its operands would be grouped, cloned and cut as if it did nothing.
TEST_F(OpStructure, EveryOpSays) {
  int ops = 0;
  for (RegisteredOperationName name : context.getRegisteredOperationsByDialect("nn")) {
    if (name.hasTrait<OpTrait::IsTerminator>() || !name.hasTrait<OpTrait::ZeroRegions>())
      continue;
    ++ops;
    EXPECT_TRUE(name.hasInterface<StructureOpInterface>())
        << name.getStringRef().str() << ": name its Access and Effort in its .td (compiler/Interfaces/Structure.h)";
    // A source computes nothing that depends on a sharding; everything else has a rule.
    if (!name.hasInterface<ShardingRuleOpInterface>()) {
      EXPECT_TRUE(name.hasTrait<OpTrait::ZeroOperands>()) << name.getStringRef().str() << " has no sharding rule";
    }
  }
  EXPECT_GT(ops, 50);
  for (StringRef name : {"dist.slice", "dist.fill_tail", "dist.offset"})
    EXPECT_TRUE(OperationName(name, &context).hasInterface<StructureOpInterface>()) << name.str();
}

// Fusion would compute a composite or a product in a loop nest, or keep a view from its buffer.
TEST_F(OpStructure, AnswersFitTheOps) {
  for (RegisteredOperationName name : context.getRegisteredOperationsByDialect("nn")) {
    if (!name.hasInterface<StructureOpInterface>())
      continue;
    // The answers are properties of the op's name, so an op without operands answers as well.
    Operation *op = Operation::create(OperationState(UnknownLoc::get(&context), name));
    std::string text = name.getStringRef().str();
    if (text != "nn.update_slice") // which is decomposed where it writes no state alone
      EXPECT_EQ(*accessOf(op) == Access::Composite, name.hasInterface<CompositeOpInterface>()) << text;
    if (*accessOf(op) == Access::Product)
      EXPECT_EQ(*effortOf(op), Effort::Product) << text;
    if (isView(op) || *accessOf(op) == Access::Source || *accessOf(op) == Access::Assemble)
      EXPECT_EQ(*effortOf(op), Effort::None) << text;
    if (*accessOf(op) == Access::Combine)
      EXPECT_EQ(*effortOf(op), Effort::Expensive) << text;
    op->destroy();
  }
}

// A collective is of many processes: passes that clone or fuse must not take it for a local op.
TEST_F(OpStructure, CollectivesSayNothing) {
  for (RegisteredOperationName name : context.getRegisteredOperationsByDialect("dist"))
    if (name.getStringRef().contains("all_") || name.getStringRef().contains("reduce") ||
        name.getStringRef().contains("permute"))
      EXPECT_FALSE(name.hasInterface<StructureOpInterface>()) << name.getStringRef().str();
  EXPECT_FALSE(accessOf(nullptr));
  EXPECT_FALSE(effortOf(nullptr));
  EXPECT_FALSE(isView(nullptr));
}

} // namespace
} // namespace hpc
