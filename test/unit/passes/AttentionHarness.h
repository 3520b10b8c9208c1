// A program of one attention, or of its gradient, from a line of sizes, types and masks: its kernel is compared with its definition.
#pragma once

#include "test/unit/passes/KernelsHarness.h"

#include <cstdlib>
#include <random>

namespace hpc::test {

/// One attention or its gradient; sizes as passes/Kernels/Regions/AttentionRegion.h names them.
struct AttentionCase {
  int64_t batch = 1, groups = 1, repeat = 1, queries = 1, keys = 1, depth = 1, width = 1;
  std::optional<int64_t> causalOffset = {};
  bool guarded = false;
  SmallVector<int64_t> bias = {}; ///< its shape; none where empty
  std::string element = "f32", biasElement = "f32", resultElement = "f32";
  bool isGradient = false;
  double dropout = -1; ///< its rate; below 0: none
  /// Where not empty: keys, or values, are put together of parts of so many.
  SmallVector<int64_t> keyParts = {}, valueParts = {};
  std::string past = ""; ///< the type of the first part's elements, cast before the rest is put behind it; empty: of all
  std::string behind = ""; ///< the type that all parts have, cast behind the concatenation; empty: `element`
  bool positionsFirst = false; ///< parts are [batch, keys, groups, channels]
  double toleranceScale = 0; ///< 0: as sizes say
  SmallVector<int64_t> visible = {}; ///< its shape; none where empty
  double hidden = 0;
  SmallVector<int64_t> queryStart = {}, keyStart = {}; ///< known to the kernel at run time alone
  /// Positions of queries, as the first attention of [queries] or [batch, queries] has them; none where empty.
  SmallVector<int64_t> positions = {};
  std::string positionElement = "i64";
};

struct AttentionKernels : KernelTest {
  /// About half of them; none along the first row and the last: of keys, where the mask is as large.
  static Tensor someBools(ArrayRef<int64_t> shape) {
    Tensor tensor(DType::Bool, shape.vec());
    const int64_t size = tensor.size(), row = shape.back();
    for (int64_t i = 0; i < size; ++i)
      tensor.ints[size_t(i)] = row == 1 || (i >= row && i < size - row) ? (i * 2654435761) >> 9 & 1 : 0;
    return tensor;
  }

  /// The first result of @main, its regions run one after the other by the host's code.
  Tensor runKernels(const std::vector<Tensor> &inputs) {
    LoadedCode code(*module);
    Block &body = module->lookupSymbol<func::FuncOp>("main").getBody().front();
    DenseMap<Value, Tensor> values;
    for (auto [argument, input] : llvm::zip_equal(body.getArguments(), inputs))
      values.try_emplace(argument, input);
    for (Operation &op : body.without_terminator()) {
      SmallVector<const Tensor *> operands;
      for (Value operand : op.getOperands())
        operands.push_back(&values.find(operand)->second);
      auto region = dyn_cast<nn::FusedOp>(op);
      std::vector<Tensor> results = region ? call(code, region, operands, {}, 0) : std::vector<Tensor>{*operands[0]}; // an alias
      for (auto [value, result] : llvm::zip_equal(op.getResults(), results)) {
        result.shape = nn::shapeOf(value).vec();
        values.try_emplace(value, result);
      }
    }
    return values.find(body.getTerminator()->getOperand(0))->second;
  }

  /// Ops that put %name together of its parts, which become arguments and inputs.
  static std::string putTogether(const AttentionCase &c, const std::string &name, ArrayRef<int64_t> parts, int64_t channels,
                                 std::string &arguments, std::vector<Tensor> &inputs) {
    auto shapeOf = [&](int64_t keys) {
      return c.positionsFirst ? SmallVector<int64_t>{c.batch, keys, c.groups, channels}
                              : SmallVector<int64_t>{c.batch, c.groups, keys, channels};
    };
    const std::string element = c.behind.empty() ? c.element : c.behind;
    std::string ops, names, types;
    for (auto [i, keys] : llvm::enumerate(parts)) {
      std::string each = "%" + name + std::to_string(i), type = typeText(shapeOf(keys), element);
      const std::string &stored = i == 0 && !c.past.empty() ? c.past : element;
      arguments += ", " + each + ": " + typeText(shapeOf(keys), stored);
      inputs.push_back(typed(someFloats(shapeOf(keys), unsigned(10 * inputs.size() + 7)), stored));
      if (stored != element) {
        ops += each + "c = nn.cast " + each + " : " + typeText(shapeOf(keys), stored) + " -> " + type + "\n";
        each += "c";
      }
      names += (i ? ", " : "") + each;
      types += (i ? ", " : "") + type;
    }
    std::string type = typeText(shapeOf(c.keys), element), last = names;
    if (parts.size() > 1) {
      last = "%" + name + "all";
      ops += last + " = nn.concat " + names + " {axis = " + (c.positionsFirst ? "1" : "2") + " : i64} : " + types +
             " -> " + type + "\n";
    }
    if (c.positionsFirst) {
      std::string to = typeText({c.batch, c.groups, c.keys, channels}, element);
      ops += last + "t = nn.transpose " + last + " {permutation = array<i64: 0, 2, 1, 3>} : " + type + " -> " + to + "\n";
      last += "t";
      type = to;
    }
    std::string to = typeText({c.batch, c.groups, c.keys, channels}, c.element);
    return ops + "%" + name + " = " +
           (type == to ? "nn.reshape " + last : "nn.cast " + last) + " : " + type + " -> " + to + "\n";
  }

  static std::string hiddenText(const AttentionCase &c) {
    return c.hidden == 0 ? "" : ", hidden = " + (std::isinf(c.hidden) ? std::string("0xFFF0000000000000") : std::to_string(c.hidden)) + " : f64";
  }

  std::mt19937 chance;
  int64_t cases = 0;

  /// Results are compared where they are made; one kernel makes all. Without tools/test.sh --all a test's first case is tried, and of the others one in twelve, drawn.
  void check(const AttentionCase &c) {
    if (cases++ > 0 && !std::getenv("HPC_TEST_ALL") && chance() % 12 != 0)
      return;
    int64_t heads = c.groups * c.repeat;
    SmallVector<int64_t> q = {c.batch, heads, c.queries, c.depth}, k = {c.batch, c.groups, c.keys, c.depth},
                         v = {c.batch, c.groups, c.keys, c.width}, o = {c.batch, heads, c.queries, c.width};
    std::string tq = typeText(q, c.element), tk = typeText(k, c.element), tv = typeText(v, c.element);
    std::string arguments = "%q: " + tq, operands = "%q, %k, %v", types = tq + ", " + tk + ", " + tv, parts;
    std::vector<Tensor> inputs = {typed(someFloats(q), c.element)};
    if (!c.keyParts.empty()) {
      parts += putTogether(c, "k", c.keyParts, c.depth, arguments, inputs);
    } else {
      arguments += ", %k: " + tk;
      inputs.push_back(typed(someFloats(k, 2), c.element));
    }
    if (!c.valueParts.empty()) {
      parts += putTogether(c, "v", c.valueParts, c.width, arguments, inputs);
    } else {
      arguments += ", %v: " + tv;
      inputs.push_back(typed(someFloats(v, 3), c.element));
    }
    if (c.isGradient) {
      std::string to = typeText(o, c.element);
      arguments += ", %g: " + to;
      operands += ", %g";
      types += ", " + to;
      inputs.push_back(typed(someFloats(o, 4), c.element));
    }
    std::string bias;
    if (!c.bias.empty()) {
      std::string tb = typeText(c.bias, c.biasElement);
      arguments += ", %b: " + tb;
      bias = " bias %b : " + tb;
      inputs.push_back(typed(someFloats(c.bias, 5), c.biasElement));
    }
    if (!c.visible.empty()) {
      arguments += ", %m: " + typeText(c.visible, "i1");
      bias += " visible %m : " + typeText(c.visible, "i1");
      inputs.push_back(someBools(c.visible));
    }
    if (c.dropout >= 0) {
      arguments += ", %step: tensor<f64>, %seed: tensor<i64>";
      bias += " dropout %step, %seed : tensor<f64>, tensor<i64>";
      Tensor step(DType::F64, {}), seed(DType::I64, {});
      step.floats[0] = 4294967299.0;
      seed.ints[0] = (int64_t(5) << 33) + 17;
      inputs.push_back(step);
      inputs.push_back(seed);
    }
    for (const auto &[name, starts] : {std::pair("query_start", c.queryStart), {"key_start", c.keyStart}}) {
      std::string values, ofValues;
      for (auto [i, start] : llvm::enumerate(starts)) {
        const bool isOfStep = i % 2 == 1; // an f64, as step scalars are; offsets of partition are i64
        std::string each = "%" + std::string(name) + std::to_string(i), type = isOfStep ? "tensor<f64>" : "tensor<i64>";
        values += (i ? ", " : "") + each;
        ofValues += (i ? ", " : "") + type;
        arguments += ", " + each + ": " + type;
        inputs.emplace_back(isOfStep ? DType::F64 : DType::I64, ArrayRef<int64_t>());
        isOfStep ? inputs.back().floats[0] = double(start) : inputs.back().ints[0] = start;
      }
      if (!starts.empty())
        bias += " " + std::string(name) + " " + values + " : " + ofValues;
    }
    if (!c.positions.empty()) {
      const bool isOfEach = int64_t(c.positions.size()) != c.queries;
      Tensor positions(*parseDType(c.positionElement), isOfEach ? std::vector<int64_t>{c.batch, c.queries} : std::vector<int64_t>{c.queries});
      llvm::copy(c.positions, positions.ints.begin());
      const std::string type = typeText(positions.shape, c.positionElement);
      inputs.push_back(positions);
      arguments += ", %places: " + type;
      bias += " query_positions %places : " + type;
    }
    // So that scores are of the size of a few, as those of a model are.
    std::string scale = std::to_string(1 / std::sqrt(double(std::max<int64_t>(c.depth, 7))));
    std::string attributes = " {scale = " + scale + " : f64" +
                             (c.causalOffset ? ", causal_offset = " + std::to_string(*c.causalOffset) + " : i64" : "") +
                             (c.guarded ? ", guarded" : "") + hiddenText(c) +
                             (c.dropout >= 0 ? ", site = 3 : i64, rate = " + std::to_string(c.dropout) + " : f64" : "") + "}";
    std::string results = c.isGradient ? typeText(q, c.resultElement) + ", " + typeText(k, c.resultElement) + ", " +
                                             typeText(v, c.resultElement)
                                       : typeText(o, c.resultElement);
    std::string names = c.isGradient ? "%r:3" : "%r", returned = c.isGradient ? "%r#0, %r#1, %r#2" : "%r";
    std::string text = "func.func @main(" + arguments + ") -> (" + results + ") {\n" + parts + names + " = nn.attention" +
                       (c.isGradient ? "_grad " : " ") + operands + bias + attributes + " : " + types + " -> " +
                       results + "\n  return " + returned + " : " + results + "\n}";
    SCOPED_TRACE(text);
    // Sums of depth and keys terms of size 9 at most, whose errors a softmax passes on; of a gradient, of width too, and of small terms of all queries of a group.
    toleranceScale = c.toleranceScale > 0 ? c.toleranceScale : 4 + double(c.depth + c.keys) / 4 + (c.isGradient ? double(c.width) / 4 + double(c.queries * c.repeat) / 64 : 0);
    int before = numKernelRuns;
    parse(text);
    if (HasFatalFailure())
      return;
    KernelTest::check("main", inputs);
    EXPECT_EQ(numKernelRuns - before, 1);
  }
};

} // namespace hpc::test
