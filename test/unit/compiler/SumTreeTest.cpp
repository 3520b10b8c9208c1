// Sums from below and from above: the terms that a layout counts on to share an all-reduce are those that a sum adds first.
#include "compiler/Dialect/NN/SumTree.h"

#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

#include <random>

namespace hpc {
namespace {

constexpr const char *full = "tensor<4x6xf32>";

struct SumTreeTest : testing::Test {
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;
  std::string text;
  int count = 0;

  SumTreeTest() { context.loadDialect<nn::NNDialect, func::FuncDialect>(); }

  std::string op(const std::string &name, const std::vector<std::string> &operands,
                 const std::vector<std::string> &types = {full, full}) {
    std::string result = "%" + std::to_string(count++);
    text += "    " + result + " = nn." + name + " " + llvm::join(operands, ", ") + " : " +
            llvm::join(ArrayRef(types).take_front(operands.size()), ", ") + " -> " + full + "\n";
    return result;
  }

  /// Arguments a to f are full, g is a row, h a number.
  Block &parse(const std::string &result) {
    std::string arguments;
    for (char name : std::string("abcdef"))
      arguments += std::string("%") + name + ": " + full + ", ";
    module = parseSourceString<ModuleOp>("module {\n  func.func @main(" + arguments +
                                             "%g: tensor<6xf32>, %h: tensor<f32>) -> " + full + " {\n" + text +
                                             "    return " + result + " : " + full + "\n  }\n}\n",
                                         &context);
    function = module->lookupSymbol<func::FuncOp>("main");
    return function.front();
  }
  Value argument(unsigned number) { return function.getArgument(number); }

  /// Whether two values, were they partial, would be terms of one all-reduce as hpc-collect-partials finds them.
  bool areCollected(Value a, Value b) {
    auto isTerm = [&](Value value) { return value == a || value == b; };
    llvm::DenseSet<Operation *> above;
    for (auto add : function.front().getOps<nn::AddOp>())
      if (llvm::any_of(add->getOperands(), isTerm))
        for (Operation *op = add; op && above.insert(op).second;)
          op = nn::aboveInSum(op);
    for (auto add : function.front().getOps<nn::AddOp>()) {
      llvm::DenseSet<Value> terms;
      for (const nn::SumTerm &term : nn::sumTree(add, above).terms)
        if (isTerm(term.value) && nn::isCollected(term.value, nn::shapeOf(add.getResult())))
          terms.insert(term.value);
      if (terms.size() == 2)
        return true;
    }
    return false;
  }
  bool meet(Value a, Value b) {
    SmallVector<Operation *, 1> sums = nn::sumsOf(b);
    return llvm::any_of(nn::sumsOf(a), [&](Operation *root) { return llvm::is_contained(sums, root); });
  }
};

// (a + g) * h + b: the scale is taken term by term, the row with it.
TEST_F(SumTreeTest, ScaledPart) {
  std::string part = op("add", {"%a", "%g"}, {full, "tensor<6xf32>"});
  std::string scaled = op("mul", {part, "%h"}, {full, "tensor<f32>"});
  std::string sum = op("add", {scaled, "%b"});
  Block &body = parse(sum);
  auto root = cast<nn::AddOp>(body.getTerminator()->getOperand(0).getDefiningOp());
  Operation *mul = root.getLhs().getDefiningOp();
  EXPECT_TRUE(meet(argument(0), argument(1)));
  nn::SumTree whole = nn::sumTree(root, {}), parts = nn::sumTree(root, {mul});
  EXPECT_EQ(whole.terms.size(), 2u);
  ASSERT_EQ(parts.terms.size(), 3u);
  EXPECT_EQ(parts.terms[0].value, argument(0));
  EXPECT_EQ(parts.terms[1].value, argument(6));
  EXPECT_EQ(parts.terms[1].scales.size(), 1u);
  EXPECT_EQ(parts.terms[2].scales.size(), 0u);
  EXPECT_EQ(parts.ops.size(), 3u);
  EXPECT_EQ(parts.ops[0], root);
}

// A part that something else reads, too, ends the tree; so does a product of two sums.
TEST_F(SumTreeTest, Ends) {
  std::string part = op("add", {"%a", "%c"}), sum = op("add", {part, "%b"}), other = op("mul", {part, sum});
  parse(other);
  EXPECT_FALSE(meet(argument(0), argument(1)));
  EXPECT_TRUE(meet(argument(0), argument(2)));
  text.clear();
  std::string left = op("add", {"%a", "%g"}, {full, "tensor<6xf32>"}), right = op("add", {"%b", "%c"});
  parse(op("add", {op("mul", {left, right}), "%d"}));
  EXPECT_FALSE(meet(argument(0), argument(3)));
  EXPECT_FALSE(meet(argument(1), argument(3)));
}

// In random programs each pair of terms meets exactly where both ways say so: a layout would else be chosen for an
// all-reduce that is not shared, or a shared one would not be counted.
TEST_F(SumTreeTest, BothWaysAgree) {
  std::mt19937 random(1);
  int meetings = 0, pairs = 0;
  for (int program = 0; program < 300; ++program) {
    text.clear();
    std::vector<std::string> values = {"%a", "%b", "%c", "%d", "%e", "%f"}; // those that nothing has read yet
    std::vector<std::string> all = values;
    while (values.size() > 1) {
      auto take = [&] {
        size_t index = random() % values.size();
        std::string value = values[index];
        values.erase(values.begin() + long(index));
        return value;
      };
      std::string made, first = take();
      switch (random() % 8) {
      case 0: made = op("add", {first, "%g"}, {full, "tensor<6xf32>"}); break;
      case 1: made = op("mul", {first, "%h"}, {full, "tensor<f32>"}); break;
      case 2: made = op("mul", {first, all[random() % all.size()]}); break;
      case 3: made = op("add", {first, all[random() % all.size()]}); break;
      default: made = op("add", {first, take()}); break;
      }
      values.push_back(made);
      all.push_back(made);
    }
    parse(values.front());
    for (unsigned a = 0; a < 6; ++a)
      for (unsigned b = 0; b < a; ++b, ++pairs) {
        // A term that is scaled before anything is added is the term that the scale makes.
        auto carried = [&](Value value) {
          while (value.hasOneUse() && isa<nn::MulOp>(*value.user_begin()))
            value = (*value.user_begin())->getResult(0);
          return value;
        };
        Value first = carried(argument(a)), second = carried(argument(b));
        // Nor does a sum stay partial under a scale that is partial itself.
        auto isAbove = [&](Value term, Value other) {
          for (Operation *user : term.getUsers())
            for (Operation *op = user; op && isa<nn::AddOp, nn::MulOp>(op); op = nn::aboveInSum(op))
              if (op == other.getDefiningOp())
                return true;
          return false;
        };
        if (first == second || isAbove(first, second) || isAbove(second, first))
          continue;
        EXPECT_EQ(meet(argument(a), argument(b)), areCollected(first, second)) << text << a << " " << b;
        meetings += meet(argument(a), argument(b));
      }
  }
  EXPECT_GT(meetings, pairs / 10);
  EXPECT_LT(meetings, pairs * 9 / 10);
}

} // namespace
} // namespace hpc
