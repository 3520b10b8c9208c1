// The ops of test/exec one by one: every factor of an op's rule cut over ranks, alone and with every other, and every
// operand a partial sum; the partitioned op computes what the serial one does. These are the layouts that the models at
// hand do not lead to: a rule that forgets that one of several results sums over a factor is right until one does.
#include "test/unit/passes/SerialEqualsPartitioned.h"

#include "compiler/Interfaces/ShardingRule.h"
#include "gtest/gtest.h"

#include <filesystem>
#include <set>

using namespace hpc;

namespace {

/// A function of one op, whose operands are its arguments but for scalars that the program computes from constants.
struct OpProgram {
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
  Operation *op = nullptr;
  ShardingRule rule;
};

bool isConstant(Value value) {
  Operation *op = value.getDefiningOp();
  return op && llvm::all_of(op->getOperands(), isConstant) && nn::tensorType(value).getNumElements() <= 1;
}

Value cloneConstant(OpBuilder &builder, Value value) {
  IRMapping mapping;
  for (Value operand : value.getDefiningOp()->getOperands())
    mapping.map(operand, cloneConstant(builder, operand));
  Operation *clone = builder.clone(*value.getDefiningOp(), mapping);
  clone->removeAttr(dist::seedAttrName);
  return clone->getResult(cast<OpResult>(value).getResultNumber());
}

/// Ids are rows of every operand beside them.
int64_t idLimit(Operation *op) {
  int64_t limit = 1 << 20;
  for (Value operand : op->getOperands())
    for (int64_t size : nn::shapeOf(operand))
      limit = size > 1 ? std::min(limit, size) : limit;
  return limit;
}

/// `partial`: that operand is a sum over a leading dim of 4.
OpProgram programOf(Operation *op, int partial = -1) {
  OpProgram program;
  OpBuilder builder(op->getContext());
  Location loc = builder.getUnknownLoc();
  program.module = ModuleOp::create(loc);
  SmallVector<Type> arguments;
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    if (!isConstant(operand)) {
      SmallVector<int64_t> shape(nn::shapeOf(operand));
      if (int(i) == partial)
        shape.insert(shape.begin(), 4);
      arguments.push_back(RankedTensorType::get(shape, nn::tensorType(operand).getElementType()));
    }
  builder.setInsertionPointToEnd(program.module->getBody());
  SmallVector<Type> results(op->getResultTypes());
  program.function = func::FuncOp::create(builder, loc, "main", builder.getFunctionType(arguments, results));
  Block *body = program.function.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  IRMapping mapping;
  unsigned next = 0;
  SmallVector<Value> operands;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    if (isConstant(operand)) {
      operands.push_back(cloneConstant(builder, operand));
      continue;
    }
    Value value = body->getArgument(next);
    if (isa<IntegerType>(nn::tensorType(value).getElementType()))
      program.function.setArgAttr(next, "test.limit", builder.getI64IntegerAttr(idLimit(op)));
    ++next;
    if (int(i) == partial) {
      value = nn::ReduceOp::create(builder, loc, ReduceKind::Sum, value, {0});
      value = nn::ReshapeOp::create(builder, loc, operand.getType(), value);
    }
    operands.push_back(value);
  }
  program.op = builder.clone(*op);
  program.op->setOperands(operands);
  program.op->removeAttr(dist::seedAttrName);
  func::ReturnOp::create(builder, loc, program.op->getResults());
  program.rule = cast<ShardingRuleOpInterface>(program.op).getShardingRule();
  return program;
}

/// The shape's dims with `factors` of them cut, each over its axis.
dist::Sharding cut(const ShardingRule &rule, ArrayRef<ShardingRule::DimFactors> dims,
                   ArrayRef<std::pair<int, std::string>> factors) {
  dist::Sharding sharding;
  for (const ShardingRule::DimFactors &dim : dims) {
    dist::DimSharding subs;
    for (int factor : dim) {
      subs.push_back({rule.factors[size_t(factor)].size, {}});
      for (const auto &[cutFactor, axis] : factors)
        if (cutFactor == factor)
          subs.back().axes.push_back(axis);
    }
    sharding.dims.push_back(subs);
  }
  return sharding;
}

/// Seeds that cut these factors wherever they stand, and nothing else.
std::string seeded(OpProgram &program, ArrayRef<std::pair<int, std::string>> factors, int partial,
                   const dist::Mesh &mesh) {
  auto seedOf = [&](ArrayRef<ShardingRule::DimFactors> dims) {
    return dist::layoutSeed(dist::normalize(cut(program.rule, dims, factors), mesh));
  };
  program.op->removeAttr(dist::seedAttrName);
  unsigned next = 0;
  bool isOfOperands = partial >= 0;
  for (auto [i, dims] : llvm::enumerate(program.rule.operands)) {
    Value value = program.op->getOperand(unsigned(i));
    if (int(i) == partial) {
      dist::Sharding sharding = cut(program.rule, dims, factors);
      sharding.dims.insert(sharding.dims.begin(), {{4, {"sum"}}});
      dist::setSeed(program.function.getArgument(next++), dist::layoutSeed(dist::normalize(sharding, mesh)));
    } else if (isa<BlockArgument>(value)) {
      dist::setSeed(value, seedOf(dims));
      ++next;
    }
    for (const auto &[factor, axis] : factors)
      isOfOperands |= llvm::any_of(dims, [&, f = factor](const auto &dim) { return llvm::is_contained(dim, f); });
  }
  if (!isOfOperands && program.op->getNumResults() == 1)
    dist::setSeed(program.op->getResult(0), seedOf(program.rule.results[0]));
  std::string text;
  llvm::raw_string_ostream(text) << *program.module;
  return text;
}

/// These share one rule.
bool isElementwise(RegisteredOperationName name) {
  Operation *op = Operation::create(OperationState(UnknownLoc::get(name.getContext()), name));
  bool is = accessOf(op) == Access::Elementwise;
  op->destroy();
  return is;
}

struct EveryFactorCut : testing::Test {
  /// Every op with a rule, once for each way it is written.
  void SetUp() override {
    for (const char *folder : {"/test/exec", "/test/exec/Inputs"})
      for (const auto &file : std::filesystem::directory_iterator(std::string(HPC_SOURCE_DIR) + folder))
        if (file.path().extension() == ".mlir")
          files.push_back(file.path().string());
    std::sort(files.begin(), files.end());
    std::set<std::string> seen;
    for (const std::string &file : files)
      for (const std::string &text : test::readModules(file)) {
        OwningOpRef<ModuleOp> module = compiler.parse(text);
        if (!module)
          continue; // of a dialect that this harness does not run
        module->walk([&](Operation *op) {
          if (!isa<ShardingRuleOpInterface>(op) || op->getNumRegions() > 0 || isConstant(op->getResult(0)))
            return;
          std::string key = op->getName().getStringRef().str();
          llvm::raw_string_ostream stream(key);
          stream << op->getAttrDictionary() << op->getOperandTypes() << op->getResultTypes();
          if (seen.insert(key).second)
            ops.push_back(op);
        });
        modules.push_back(std::move(module));
      }
  }

  void expectEqual(const std::string &text, const char *mesh) {
    ++runs;
    EXPECT_EQ(test::compare(text, mesh), "") << "on " << mesh << "\n" << text;
  }

  test::Compiler compiler;
  std::vector<std::string> files;
  std::vector<OwningOpRef<ModuleOp>> modules;
  std::vector<Operation *> ops;
  int runs = 0;
};

// A result that lacks a factor needs its sum, or the value of one rank would be taken for all.
TEST_F(EveryFactorCut, Alone) {
  for (Operation *op : ops) {
    OpProgram program = programOf(op);
    for (const char *text : {"tp=2:tensor", "tp=3:tensor"})
      for (size_t factor = 0; factor < program.rule.factors.size(); ++factor)
        expectEqual(seeded(program, {{int(factor), "tp"}}, -1, *dist::parseMesh(text)), text);
  }
  EXPECT_GT(runs, 500);
}

// Two cuts of one op: a sum over one axis may not lose the other's part.
TEST_F(EveryFactorCut, InPairs) {
  const char *text = "dp=2:data, tp=2:tensor";
  for (Operation *op : ops) {
    OpProgram program = programOf(op);
    for (size_t a = 0; a < program.rule.factors.size(); ++a)
      for (size_t b = 0; b < program.rule.factors.size(); ++b)
        if (a != b)
          expectEqual(seeded(program, {{int(a), "dp"}, {int(b), "tp"}}, -1, *dist::parseMesh(text)), text);
  }
  EXPECT_GT(runs, 500);
}

// Where an op is not linear, a partial sum must be summed before it; where it is, in one operand at a time.
TEST_F(EveryFactorCut, BesidePartialSums) {
  const char *text = "sum=2:tensor, tp=2:tensor";
  for (Operation *op : ops)
    for (int operand = 0; operand < int(op->getNumOperands()); ++operand) {
      Value value = op->getOperand(unsigned(operand));
      if (isConstant(value) || !isa<FloatType>(nn::tensorType(value).getElementType()))
        continue;
      OpProgram program = programOf(op, operand);
      expectEqual(seeded(program, {}, operand, *dist::parseMesh(text)), text);
      for (size_t factor = 0; factor < program.rule.factors.size(); ++factor)
        expectEqual(seeded(program, {{int(factor), "tp"}}, operand, *dist::parseMesh(text)), text);
    }
  EXPECT_GT(runs, 500);
}

// An op that no program of test/exec has would never be cut here.
TEST_F(EveryFactorCut, HasEveryOp) {
  std::set<StringRef> names;
  for (Operation *op : ops)
    names.insert(op->getName().getStringRef());
  for (RegisteredOperationName name : compiler.context.getRegisteredOperationsByDialect("nn"))
    if (name.hasInterface<ShardingRuleOpInterface>() && name.hasTrait<OpTrait::ZeroRegions>() && !isElementwise(name))
      EXPECT_TRUE(names.count(name.getStringRef())) << name.getStringRef().str() << ": no program of test/exec has it";
}

} // namespace
