// The device's kernels of attention and of its gradient against the interpreter, run block by block with their threads in
// three orders: sizes round a tile of 32, grouped heads, masks, biases, heads that are strides, every float type.
#include "test/unit/passes/KernelsHarness.h"

#include "passes/Kernels/Device/DeviceTiles.h"

namespace hpc::test {
namespace {

struct Attention {
  int64_t b = 1, g = 1, r = 1, q = 1, k = 1, d = 8, x = 8;
  std::string attributes = "scale = 0.3 : f64"; ///< of the op
  std::vector<int64_t> bias = {};               ///< its shape; empty: none
  std::string element = "f32", result = "";     ///< types; of the result, the element's where empty
  std::vector<int64_t> visible = {};            ///< its shape; empty: none
  std::vector<int64_t> positions = {};          ///< of queries, [q] or [b, q]; empty: none
  bool drops = false;
};

struct DeviceAttentionKernels : KernelTest {
  Tensor some(const std::string &element, std::vector<int64_t> shape, unsigned seed) {
    return typed(someFloats(shape, seed), element);
  }

  /// Of a batch of two: the second ends after 20 of 33 positions.
  static Tensor padding() {
    std::vector<int64_t> kept(66, 0);
    std::fill(kept.begin() + 53, kept.end(), -1);
    return someInts({2, 1, 1, 33}, kept);
  }
  bool hardBias = false;
  /// The first rows: nothing seen at all, nothing seen in the first tile, one key, a NaN, two infinities.
  static void harden(Tensor &bias) {
    const int64_t keys = bias.shape[3];
    for (int64_t key = 0; key < keys; ++key) {
      bias.floats[key] = -INFINITY;
      bias.floats[keys + key] = key < 40 ? -INFINITY : 0.5;
      bias.floats[2 * keys + key] = key == 33 ? 0.5 : -INFINITY;
    }
    bias.floats[3 * keys + 35] = NAN;
    bias.floats[4 * keys + 2] = bias.floats[4 * keys + 69] = INFINITY;
  }

  /// Runs the one region of `text` on the device's code.
  void checkRegion(const std::string &text, const std::vector<Tensor> &inputs) {
    parse(text);
    if (HasFatalFailure())
      return;
    (*module)->setAttr(targetAttrName, StringAttr::get(&context, deviceTarget));
    onDevice = std::make_unique<DeviceCodeOnCpu>(*module, /*verified=*/false);
    if (HasFailure())
      return;
    DenseMap<Value, LocalTensors> values;
    RunOptions options;
    options.observe = [&](Value value, const LocalTensors &tensors) {
      values[value] = tensors;
      return Status();
    };
    Expected<std::vector<Tensor>> results = runFunction(module->lookupSymbol<func::FuncOp>("main"), inputs, options);
    ASSERT_TRUE(results.ok()) << results.status().text();
    module->walk([&](nn::FusedOp region) {
      SmallVector<const Tensor *> operands;
      for (const Tensor &input : inputs)
        operands.push_back(&input);
      std::vector<Tensor> actual = callOnDevice(region, operands, dist::Mesh{}, 0);
      ++numKernelRuns;
      for (auto [i, result] : llvm::enumerate(region.getResults()))
        expectClose(actual[i], *values.lookup(result)[0], result.getType(), dist::Mesh{}, 0, "result " + std::to_string(i));
    });
  }

  void check(const Attention &one, bool gradient) {
    const std::string result = one.result.empty() ? one.element : one.result;
    const int64_t h = one.g * one.r;
    const std::vector<int64_t> query = {one.b, h, one.q, one.d}, key = {one.b, one.g, one.k, one.d},
                               value = {one.b, one.g, one.k, one.x}, out = {one.b, h, one.q, one.x};
    std::vector<Tensor> inputs = {some(one.element, query, 1), some(one.element, key, 2), some(one.element, value, 3)};
    std::string arguments, types, names;
    auto add = [&](const std::string &name, const std::string &type) {
      arguments += (arguments.empty() ? "" : ", ") + name + ": " + type;
      types += (types.empty() ? "" : ", ") + type;
      names += (names.empty() ? "" : ", ") + name;
    };
    add("%q", typeText(query, one.element));
    add("%k", typeText(key, one.element));
    add("%v", typeText(value, one.element));
    if (gradient) {
      inputs.push_back(some(one.element, out, 4));
      add("%g", typeText(out, one.element));
    }
    const std::string plain = names, plainTypes = types;
    std::string bias;
    if (!one.bias.empty()) {
      inputs.push_back(some("f32", one.bias, 5));
      if (hardBias)
        harden(inputs.back());
      bias = " bias %m : " + typeText(one.bias, "f32");
      add("%m", typeText(one.bias, "f32"));
    }
    if (!one.visible.empty()) {
      Tensor mask(DType::Bool, one.visible);
      for (int64_t i = one.k; i < mask.size(); ++i) // the first row sees nothing
        mask.ints[size_t(i)] = (i * 2654435761) >> 9 & 1;
      inputs.push_back(mask);
      bias += " visible %s : " + typeText(one.visible, "i1");
      add("%s", typeText(one.visible, "i1"));
    }
    if (one.drops) {
      inputs.insert(inputs.end(), {someFloats({}, 1), someInts({}, {17})});
      inputs[inputs.size() - 2].floats[0] = 3;
      bias += " dropout %step, %seed : tensor<f32>, tensor<i64>";
      add("%step", "tensor<f32>");
      add("%seed", "tensor<i64>");
    }
    if (!one.positions.empty()) {
      const bool isOfEach = int64_t(one.positions.size()) != one.q;
      inputs.push_back(someInts(isOfEach ? std::vector<int64_t>{one.b, one.q} : std::vector<int64_t>{one.q}, one.positions));
      const std::string type = typeText(inputs.back().shape, "i64");
      bias += " query_positions %places : " + type;
      add("%places", type);
    }
    const std::string results = gradient ? typeText(query, result) + ", " + typeText(key, result) + ", " + typeText(value, result)
                                         : typeText(out, result);
    const std::string op = (gradient ? "%r:3 = nn.attention_grad " : "%r = nn.attention ") + plain + bias + " {" +
                           one.attributes + "} : " + plainTypes + " -> " + results;
    const std::string given = gradient ? "%r#0, %r#1, %r#2" : "%r", outer = gradient ? "%f#0, %f#1, %f#2" : "%f";
    SCOPED_TRACE(op);
    std::string outerArguments = arguments, outerNames = names;
    for (std::string *text : {&outerArguments, &outerNames})
      for (size_t at = 0; (at = text->find('%', at)) != std::string::npos; at += 2)
        text->insert(at + 1, "o");
    checkRegion("func.func @main(" + outerArguments + ") -> (" + results + ") {\n" + (gradient ? "%f:3" : "%f") +
                    " = nn.fused \"attention\" (" + outerNames + ") {rows = 1 : i64, scalars = []} : (" + types + ") -> (" +
                    results + ") {\n^bb0(" + arguments + "):\n" + op + "\nnn.yield " + given + " : " + results +
                    "\n}\nreturn " + outer + " : " + results + "\n}",
                inputs);
  }
  void checkBoth(const Attention &one) {
    check(one, false);
    check(one, true);
  }
};

const std::string causal = "scale = 0.3 : f64, causal_offset = 0 : i64";

// Part of a tile, one, several, and a last one that is not full, of queries and of keys; channels that no thread's share divides.
TEST_F(DeviceAttentionKernels, EverySize) {
  toleranceScale = 16; // sums over up to 70 keys of products of up to 9
  for (int64_t q : {1, 32, 70})
    for (int64_t k : {1, 32, 65})
      checkBoth({.q = q, .k = k});
  for (auto [d, x] : {std::pair<int64_t, int64_t>(1, 64), {64, 5}, {3, 1}})
    checkBoth({.q = 9, .k = 35, .d = d, .x = x});
}

// More channels than a tile in shared memory or a thread's registers hold: some operands are read where they are, columns come in chunks.
TEST_F(DeviceAttentionKernels, ManyChannels) {
  toleranceScale = 64; // sums of 300 products of up to 9
  for (auto [d, x] : {std::pair<int64_t, int64_t>(130, 290), {300, 140}, {300, 7}})
    checkBoth({.q = 34, .k = 33, .d = d, .x = x, .attributes = "scale = 0.02 : f64"});
}

// A head that reads another's keys, or sums over the queries of its own alone, differs as soon as there are several.
TEST_F(DeviceAttentionKernels, BatchesAndGroups) {
  toleranceScale = 16;
  for (int64_t r : {1, 3})
    checkBoth({.b = 2, .g = 2, .r = r, .q = 33, .k = 40, .attributes = causal});
}

// Tiles that see nothing of each other are left out: one too many would cost the rows at the diagonal.
TEST_F(DeviceAttentionKernels, CausalOffsets) {
  toleranceScale = 16;
  for (int64_t offset : {int64_t(0), int64_t(1), int64_t(31), int64_t(64), int64_t(1) << 40})
    for (auto [q, k] : {std::pair<int64_t, int64_t>(65, 65), {33, 97}, {1, 40}})
      checkBoth({.q = q, .k = k, .attributes = "scale = 0.3 : f64, causal_offset = " + std::to_string(offset) + " : i64"});
}

// Each query is where its position says: two intervals, any order, in each sequence elsewhere, some that see nothing; dropout draws by position.
TEST_F(DeviceAttentionKernels, GivenPositions) {
  toleranceScale = 16;
  std::vector<int64_t> zigzag, mixed, each = {50, 0, 3, 7, -1, 200};
  for (int64_t i = 0; i < 40; ++i) {
    zigzag.push_back(i < 20 ? i + 5 : i + 50);
    mixed.push_back(i * 7919 % 90);
  }
  for (const std::vector<int64_t> &positions : {zigzag, mixed}) {
    checkBoth({.b = 2, .g = 1, .r = 2, .q = 40, .k = 90, .attributes = causal, .positions = positions});
    checkBoth({.b = 2, .g = 1, .r = 2, .q = 40, .k = 90, .attributes = causal + ", site = 3 : i64, rate = 0.3 : f64", .positions = positions, .drops = true});
  }
  checkBoth({.q = 40, .k = 40, .attributes = "scale = 0.3 : f64, site = 3 : i64, rate = 0.3 : f64", .positions = mixed, .drops = true});
  for (const char *guarded : {"", ", guarded"})
    checkBoth({.b = 2, .g = 1, .r = 2, .q = 3, .k = 60, .attributes = causal + guarded, .positions = each});
}

// Heads that lie beside each other in their buffers, and a bias that the region makes: strides and element code of the region, not copies before it.
TEST_F(DeviceAttentionKernels, ViewsAndABiasOfTheRegion) {
  toleranceScale = 16;
  checkRegion(R"mlir(
    func.func @main(%x: tensor<2x33x36xf32>, %p: tensor<2x1x1x33xi64>) -> tensor<2x33x3x4xf32> {
      %f = nn.fused "attention" (%x, %p) {rows = 1 : i64, scalars = []} : (tensor<2x33x36xf32>, tensor<2x1x1x33xi64>) -> tensor<2x33x3x4xf32> {
      ^bb0(%a: tensor<2x33x36xf32>, %b: tensor<2x1x1x33xi64>):
        %q0 = nn.slice %a {starts = array<i64: 0, 0, 0>, steps = array<i64: 1, 1, 1>} : tensor<2x33x36xf32> -> tensor<2x33x12xf32>
        %k0 = nn.slice %a {starts = array<i64: 0, 0, 12>, steps = array<i64: 1, 1, 1>} : tensor<2x33x36xf32> -> tensor<2x33x12xf32>
        %v0 = nn.slice %a {starts = array<i64: 0, 0, 24>, steps = array<i64: 1, 1, 1>} : tensor<2x33x36xf32> -> tensor<2x33x12xf32>
        %q1 = nn.reshape %q0 : tensor<2x33x12xf32> -> tensor<2x33x3x4xf32>
        %k1 = nn.reshape %k0 : tensor<2x33x12xf32> -> tensor<2x33x3x4xf32>
        %v1 = nn.reshape %v0 : tensor<2x33x12xf32> -> tensor<2x33x3x4xf32>
        %q = nn.transpose %q1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x33x3x4xf32> -> tensor<2x3x33x4xf32>
        %k = nn.transpose %k1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x33x3x4xf32> -> tensor<2x3x33x4xf32>
        %v = nn.transpose %v1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x33x3x4xf32> -> tensor<2x3x33x4xf32>
        %zero = nn.constant dense<0> : tensor<i64> : tensor<i64>
        %seen = nn.compare ge %b, %zero : tensor<2x1x1x33xi64>, tensor<i64> -> tensor<2x1x1x33xi1>
        %none = nn.constant dense<0.0> : tensor<f32> : tensor<f32>
        %hidden = nn.constant dense<-3.0e38> : tensor<f32> : tensor<f32>
        %bias = nn.select %seen, %none, %hidden : tensor<2x1x1x33xi1>, tensor<f32>, tensor<f32> -> tensor<2x1x1x33xf32>
        %r = nn.attention %q, %k, %v bias %bias : tensor<2x1x1x33xf32> {scale = 0.3 : f64, causal_offset = 0 : i64} : tensor<2x3x33x4xf32>, tensor<2x3x33x4xf32>, tensor<2x3x33x4xf32> -> tensor<2x3x33x4xf32>
        %t = nn.transpose %r {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x3x33x4xf32> -> tensor<2x33x3x4xf32>
        nn.yield %t : tensor<2x33x3x4xf32>
      }
      return %f : tensor<2x33x3x4xf32>
    })mlir",
              {some("f32", {2, 33, 36}, 1), padding()});
}

// Each of the bias's dims whole or broadcast.
TEST_F(DeviceAttentionKernels, Biases) {
  toleranceScale = 16;
  for (auto [b, h, q, k] : {std::array<int64_t, 4>{2, 4, 33, 34}, {1, 1, 1, 1}, {2, 1, 1, 34}, {1, 4, 33, 1}, {1, 1, 33, 34}})
    checkBoth({.b = 2, .g = 2, .r = 2, .q = 33, .k = 34, .bias = {b, h, q, k}});
}

// What is not visible is a number, whatever the mask's dims: -inf in a whole row is nothing seen, another one equal weights.
TEST_F(DeviceAttentionKernels, Visible) {
  toleranceScale = 16;
  for (const char *hidden : {"0xFFF0000000000000", "-3.4028234663852886e38"})
    for (auto [b, h, q] : {std::array<int64_t, 3>{2, 4, 33}, {2, 1, 1}, {1, 1, 33}})
      checkBoth({.b = 2, .g = 2, .r = 2, .q = 33, .k = 34, .attributes = "scale = 0.3 : f64, hidden = " + std::string(hidden) + " : f64", .visible = {b, h, q, 34}});
  checkBoth({.q = 40, .k = 40, .attributes = causal + ", hidden = 0xFFF0000000000000 : f64", .bias = {1, 1, 40, 40}, .visible = {1, 1, 40, 40}});
}

// Sums are f32 or wider and rounded once; f64 is f64 throughout. Few channels leave no room for what waits in the gradient.
TEST_F(DeviceAttentionKernels, EveryFloatType) {
  for (auto [element, result, scale] : {std::tuple("f16", "", 8.0), {"bf16", "", 8.0}, {"f64", "", 64.0}, {"bf16", "f32", 3e4}, {"f32", "bf16", 2.0}, {"f16", "f64", 1e12}})
    for (int64_t d : {2, 5, 8}) {
      toleranceScale = scale; // 16-bit weights are rounded by the definition, not here; wide results show it
      checkBoth({.g = 1, .r = 2, .q = 34, .k = 33, .d = d, .attributes = causal, .element = element, .result = result});
    }
}

// Rows that see nothing, NaN and infinities come out as the definition has them, whether weights that are NaN count or not.
TEST_F(DeviceAttentionKernels, HardRows) {
  toleranceScale = 16;
  for (const char *guarded : {"", ", guarded"}) {
    hardBias = true;
    checkBoth({.q = 40, .k = 70, .attributes = std::string("scale = 0.3 : f64") + guarded, .bias = {1, 1, 40, 70}});
    hardBias = false;
  }
}

// No queries, keys, channels, heads or batch: sums of nothing are 0, and nothing is read.
TEST_F(DeviceAttentionKernels, Empty) {
  for (const char *guarded : {"", ", guarded"}) {
    const std::string attributes = std::string("scale = 0.3 : f64") + guarded;
    checkBoth({.q = 0, .k = 5, .attributes = attributes});
    checkBoth({.q = 5, .k = 0, .attributes = attributes});
    checkBoth({.q = 5, .k = 5, .d = 0, .attributes = attributes});
    checkBoth({.q = 5, .k = 5, .x = 0, .attributes = attributes});
    checkBoth({.b = 0, .q = 5, .k = 5, .attributes = attributes});
    checkBoth({.g = 0, .q = 5, .k = 5, .attributes = attributes});
  }
}

} // namespace
} // namespace hpc::test
