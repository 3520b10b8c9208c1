// A cut that some neighbour cannot follow is given up where that moves less, in bytes: for every pair of element types.
// A column of `from`, cut, is repeated `width` times and converted to `to`; its reader wants all rows. Either the column
// is gathered, or what was made of it.
#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/NN/NN.h"
#include "compiler/ElementType.h"
#include "passes/Phases.h"
#include "passes/Propagate/Passes.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

using namespace hpc;

namespace {

/// Whether the converted value is cut after propagation; nothing where the program does not propagate.
std::optional<bool> staysCut(DType from, DType to, int64_t width, MLIRContext *context) {
  OpBuilder builder(context);
  Location loc = builder.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  (*module)->setAttr(dist::meshAttrName, dist::MeshAttr::get(context, *dist::parseMesh("tp=2:tensor")));
  auto type = [&](int64_t columns, DType dtype) { return RankedTensorType::get({8, columns}, typeOf(dtype, context)); };
  auto main = func::FuncOp::create(loc, "main", builder.getFunctionType({type(1, from)}, {type(width, to)}));
  module->push_back(main);
  Block *block = main.addEntryBlock();
  builder.setInsertionPointToEnd(block);
  Value column = nn::AbsOp::create(builder, loc, block->getArgument(0));
  dist::setSeed(column, dist::layoutSeed(*dist::parseSharding("[8@tp, 1]")));
  Value repeated = nn::BroadcastOp::create(builder, loc, type(width, from), column);
  Value converted = nn::CastOp::create(builder, loc, type(width, to), repeated);
  func::ReturnOp::create(builder, loc, ValueRange{nn::CumsumOp::create(builder, loc, converted, 0).getResult()});
  PassManager passes(context);
  passes.addPass(createPropagateShardings());
  if (failed(passes.run(*module)))
    return std::nullopt;
  return !dist::cutAxes(dist::shardingOf(converted)).empty();
}

// Any other weight of a type than its bytes (f32 once counted 5, i8 2) decides some of these otherwise.
TEST(ConflictCosts, WeighBytesOfTheElementType) {
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  int kept = 0, all = 0;
  for (int from = 0; from < numDTypes; ++from)
    for (int to = 0; to < numDTypes; ++to)
      for (int64_t width = 1; width <= 9; ++width) {
        std::optional<bool> cut = staysCut(DType(from), DType(to), width, &context);
        ASSERT_TRUE(cut);
        bool isWorthIt = width * byteSize(DType(to)) <= byteSize(DType(from));
        EXPECT_EQ(*cut, isWorthIt) << name(DType(from)) << " to " << width << " columns of " << name(DType(to));
        kept += *cut;
        ++all;
      }
  EXPECT_GT(kept, 100);
  EXPECT_LT(kept, all - 100);
}

} // namespace
