// Attention of keys in parts, carried from one to the next, against attention of all keys at once: in the interpreter, whose definition
// of the whole is tested elsewhere, and each part as a kernel of the host and of the device against the interpreter.
#include "test/unit/passes/KernelsHarness.h"

#include <numeric>

namespace hpc::test {
namespace {

struct PartsCase {
  int64_t batch = 1, groups = 1, repeat = 1, queries = 1, depth = 4, width = 4;
  SmallVector<int64_t> parts; ///< keys of each, in the order in which they are read
  SmallVector<int64_t> order = {}; ///< numbers of the parts: which is read first; empty: as they lie
  std::string attributes = "scale = 0.4 : f64", element = "f64", result = "";
  bool drops = false;
};

struct AttentionParts : KernelTest {
  void check(const PartsCase &c) {
    const int64_t heads = c.groups * c.repeat, keys = std::accumulate(c.parts.begin(), c.parts.end(), int64_t(0));
    const bool isCausal = c.attributes.find("causal") != std::string::npos;
    const std::string wide = c.element == "f64" ? "f64" : "f32", result = c.result.empty() ? c.element : c.result;
    const std::string q = typeText({c.batch, heads, c.queries, c.depth}, c.element), k = typeText({c.batch, c.groups, keys, c.depth}, c.element),
                      v = typeText({c.batch, c.groups, keys, c.width}, c.element), g = typeText({c.batch, heads, c.queries, c.width}, c.element),
                      o = typeText({c.batch, heads, c.queries, c.width}, result), s = typeText({c.batch, heads, c.queries, c.width}, wide),
                      n = typeText({c.batch, heads, c.queries, 1}, wide), l = typeText({c.batch, heads, c.queries, 2}, wide), dq = typeText({c.batch, heads, c.queries, c.depth}, wide);
    std::vector<Tensor> inputs = {typed(someFloats({c.batch, heads, c.queries, c.depth}), c.element), typed(someFloats({c.batch, c.groups, keys, c.depth}, 2), c.element),
                                  typed(someFloats({c.batch, c.groups, keys, c.width}, 3), c.element), typed(someFloats({c.batch, heads, c.queries, c.width}, 4), c.element)};
    std::string arguments = "%q: " + q + ", %k: " + k + ", %v: " + v + ", %g: " + g, drop, dropped, attributes = c.attributes;
    if (c.drops) {
      arguments += ", %step: tensor<f64>, %seed: tensor<i64>";
      inputs.push_back(typed(someFloats({}, 1), "f64"));
      inputs.push_back(someInts({}, {17}));
      inputs[4].floats[0] = 3;
      dropped = "%step, %seed";
      drop = " dropout %step, %seed : tensor<f64>, tensor<i64>";
      attributes += ", site = 2 : i64, rate = 0.3 : f64";
    }
    std::string body = "%whole = nn.attention %q, %k, %v" + drop + " {" + attributes + "} : " + q + ", " + k + ", " + v + " -> " + o + "\n" +
                       "%wide:3 = nn.attention_grad %q, %k, %v, %g" + drop + " {" + attributes + "} : " + q + ", " + k + ", " + v + ", " + g + " -> " + dq + ", " + k + ", " + v + "\n";
    // 1. Forward, part by part.
    SmallVector<int64_t> order = c.order, firsts;
    int64_t total = 0;
    for (int64_t size : c.parts) {
      firsts.push_back(total);
      total += size;
    }
    if (order.empty())
      for (size_t i = 0; i < c.parts.size(); ++i)
        order.push_back(int64_t(i));
    std::string sum, gradients;
    SmallVector<std::string> keyParts(c.parts.size()), valueParts(c.parts.size());
    for (auto [number, part] : llvm::enumerate(order)) {
      const std::string i = std::to_string(part), kp = typeText({c.batch, c.groups, c.parts[size_t(part)], c.depth}, c.element),
                        vp = typeText({c.batch, c.groups, c.parts[size_t(part)], c.width}, c.element), at = "{starts = array<i64: 0, 0, " + std::to_string(firsts[size_t(part)]) + ", 0>, steps = array<i64: 1, 1, 1, 1>}";
      body += "%k" + i + " = nn.slice %k " + at + " : " + k + " -> " + kp + "\n%v" + i + " = nn.slice %v " + at + " : " + v + " -> " + vp + "\n";
      arguments += ", %first" + i + ": tensor<i64>";
      inputs.push_back(someInts({}, {firsts[size_t(part)]}));
      std::string of = attributes, random = drop;
      if (c.drops) {
        random = " dropout %step, %seed, %first" + i + " : tensor<f64>, tensor<i64>, tensor<i64>";
        of += ", offset_dims = array<i64: 4>, global_shape = array<i64: " + std::to_string(c.batch) + ", " + std::to_string(c.groups) + ", " + std::to_string(c.repeat) + ", " +
              std::to_string(c.queries) + ", " + std::to_string(keys) + ">";
      }
      const std::string start = isCausal ? " key_start %first" + i + " : tensor<i64>" : "";
      const bool isLast = number + 1 == order.size();
      body += "%o" + i + ", %l" + i + " = nn.attention %q, %k" + i + ", %v" + i + random + start +
              (number ? " carried %o" + std::to_string(order[number - 1]) + ", %l" + std::to_string(order[number - 1]) + " : " + s + ", " + l : "") + " {" + of + "} : " + q + ", " + kp + ", " + vp +
              " -> " + (isLast ? o : s) + ", " + l + "\n";
      gradients += "%d" + i + ":3 = nn.attention_grad %q, %k" + i + ", %v" + i + ", %g" + random + start + " whole %l" + std::to_string(order.back()) + ", %rows : " + l + ", " + n + " {" + of + "} : " + q + ", " +
                   kp + ", " + vp + ", " + g + " -> " + dq + ", " + kp + ", " + vp + "\n";
      if (number == 0)
        sum = "%d" + i + "#0";
      else
        gradients += "%sum" + i + " = nn.add " + sum + ", %d" + i + "#0 : " + dq + ", " + dq + " -> " + dq + "\n", sum = "%sum" + i;
      keyParts[size_t(part)] = kp;
      valueParts[size_t(part)] = vp;
    }
    // 2. Gradients.
    const std::string last = "%o" + std::to_string(order.back());
    body += "%gw = nn.cast %g : " + g + " -> " + s + "\n%ow = nn.cast " + last + " : " + o + " -> " + s + "\n%p = nn.mul %gw, %ow : " + s + ", " + s + " -> " + s +
            "\n%rows = nn.reduce sum %p {axes = array<i64: 3>} : " + s + " -> " + n + "\n" + gradients;
    for (auto [name, which, types, type] : {std::tuple("%dk", "#1", ArrayRef(keyParts), k), {"%dv", "#2", ArrayRef(valueParts), v}}) {
      std::string names, ofNames;
      for (size_t i = 0; i < types.size(); ++i) {
        names += (i ? ", %d" : "%d") + std::to_string(i) + which;
        ofNames += (i ? ", " : "") + types[i];
      }
      body += std::string(name) + " = nn.concat " + names + " {axis = 2 : i64} : " + ofNames + " -> " + type + "\n";
    }
    const std::string types = o + ", " + dq + ", " + k + ", " + v;
    const std::string text = "func.func @main(" + arguments + ") -> (" + types + ", " + types + ") {\n" + body + "return %whole, %wide#0, %wide#1, %wide#2, " + last + ", " + sum + ", %dk, %dv : " + types + ", " + types + "\n}";
    SCOPED_TRACE(text);
    parse(text);
    if (HasFatalFailure())
      return;
    Expected<std::vector<Tensor>> results = runFunction(module->lookupSymbol<func::FuncOp>("main"), inputs, {});
    ASSERT_TRUE(results.ok()) << results.status().text();
    const double tolerance = c.element == "f64" ? 1e-13 : c.element == "f32" ? 2e-5 : 6e-2;
    for (size_t i = 0; i < 4; ++i)
      for (int64_t at = 0; at < (*results)[i].size(); ++at) {
        const double whole = (*results)[i].floats[size_t(at)], parts = (*results)[i + 4].floats[size_t(at)];
        ASSERT_TRUE((std::isnan(whole) && std::isnan(parts)) || std::abs(whole - parts) <= tolerance * std::max(1.0, std::abs(whole)))
            << "result " << i << " element " << at << ": " << parts << " of parts, " << whole << " of all keys";
      }
    toleranceScale = c.element == "bf16" ? 16 : 40;
    KernelTest::check("main", inputs);
  }
};

// Parts of one key, of several blocks of 96, in any order; queries of several blocks and few, grouped heads.
TEST_F(AttentionParts, OfAnySize) {
  check({.batch = 2, .groups = 2, .queries = 37, .parts = {5, 1, 100}, .order = {2, 0, 1}});
  check({.groups = 2, .repeat = 3, .queries = 2, .depth = 16, .width = 20, .parts = {33, 33}, .element = "f32"});
}

// A ring's causal mask: parts that a query sees whole, in part, not at all; the first that it reads is the one after its own position.
TEST_F(AttentionParts, BehindACausalMask) {
  check({.batch = 2, .queries = 36, .parts = {12, 12, 12}, .order = {2, 0, 1}, .attributes = "scale = 0.4 : f64, causal_offset = 3 : i64", .element = "f32"});
  // Queries that see nothing at all: NaN, or 0 where guarded, and no gradient.
  for (const char *guarded : {"", ", guarded"})
    check({.queries = 9, .parts = {3, 3, 3}, .order = {1, 2, 0}, .attributes = std::string("scale = 0.4 : f64, causal_offset = -2 : i64") + guarded});
}

// Operands of 16 bits: scores, sums and what is carried are f32.
TEST_F(AttentionParts, OfSixteenBits) {
  check({.groups = 2, .queries = 20, .depth = 8, .width = 8, .parts = {10, 10}, .attributes = "scale = 0.4 : f64, causal_offset = 0 : i64", .element = "bf16"});
}

// A weight of a part is dropped where it is dropped of all keys.
TEST_F(AttentionParts, DropTheSameWeights) {
  check({.groups = 2, .repeat = 2, .queries = 12, .parts = {4, 4, 4}, .order = {1, 2, 0}, .attributes = "scale = 0.4 : f64, causal_offset = 0 : i64", .drops = true});
}

} // namespace
} // namespace hpc::test
