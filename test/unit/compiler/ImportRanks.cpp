// Every op of the import on inputs of every rank and number, whether they fit or not: a program or an error that a user can
// act on, never a crash.
#include "test/unit/compiler/ImportFixture.h"
#include "test/unit/compiler/OnnxWriter.h"

#include "compiler/Import/OnnxOps/OnnxOp.h"

#include <fstream>

namespace hpc {
namespace {

using namespace onnxwriter;

struct ImportRanks : testing::Test {
  TemporaryFolder folder;
  MLIRContext context;

  /// `count` inputs, the first of rank `first` and `type`, the others of rank `others` and `otherType`; all sizes are `size`.
  /// Known: initializers of ones, so that whatever folds is folded.
  void check(const onnx::OnnxOp &op, int type, int count, int first, int others, int otherType, bool isKnown = false,
             int64_t size = 2) {
    Graph graph;
    graph.opset = op.domain[0] ? 18 : op.since;
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) {
      names.push_back("x" + std::to_string(i));
      std::vector<int64_t> dims(size_t(i ? others : first), size);
      int own = i ? otherType : type;
      if (isKnown)
        graph.initializers.push_back(ones(names.back(), own, dims));
      else
        graph.inputs.push_back(value(names.back(), own, std::vector<std::string>(dims.size(), std::to_string(size))));
    }
    std::vector<std::string> attributes;
    for (const char *size : {"num_heads", "q_num_heads", "kv_num_heads", "is_causal", "do_rotary", "N", "K"})
      attributes.push_back(attribute(size, int64_t(1)));
    attributes.push_back(attribute("block_size", int64_t(16)));
    graph.nodes = {node(op.name, names, {"y"}, attributes, "n", op.domain)};
    graph.outputs = {value("y", type, {})};
    std::ofstream(folder.file("m.onnx"), std::ios::binary) << graph.model(); // thousands of files: none waits for the disk
    auto module = importOnnx(folder.file("m.onnx"), {}, &context);
    if (!module.ok())
      EXPECT_TRUE(module.status().kind() == ErrorKind::Model || module.status().kind() == ErrorKind::Unsupported)
          << op.name << " of " << count << (isKnown ? " known" : "") << " inputs, ranks " << first << " and " << others
          << ", types " << type << " and " << otherType << ": " << module.status().text();
  }

  static std::string ones(const std::string &name, int type, const std::vector<int64_t> &dims) {
    int64_t count = 1;
    for (int64_t dim : dims)
      count *= dim;
    switch (type) {
    case f32:
      return floats(name, dims, std::vector<float>(size_t(count), 1));
    case i64:
      return ints(name, dims, std::vector<int64_t>(size_t(count), 1));
    default:
      return tensor(name, type, dims, std::vector<uint8_t>(size_t(count), 1));
    }
  }
};

// A function of OnnxOps that trusts a rank reads beside a shape.
TEST_F(ImportRanks, EveryOp) {
  for (const onnx::OnnxOp &op : onnx::allOnnxOps())
    for (int count : {1, 3})
      for (int rank : {0, 1, 2, 4})
        check(op, f32, count, rank, rank, f32);
}

// The same of inputs that are known, of types that fit and that do not: a function that folds reads numbers as integers or as
// floats, whichever it expects.
TEST_F(ImportRanks, EveryOpOfKnownInputs) {
  for (const onnx::OnnxOp &op : onnx::allOnnxOps())
    for (int count : {1, 2, 3, 5})
      for (auto [type, other] : {std::pair{f32, i64}, {i64, f32}, {f32, boolean}, {i64, i64}, {boolean, i64}})
        for (int rank : {0, 1, 3})
          for (int64_t size : {2, 0})
            if (rank || size)
              check(op, type, count, rank, 1, other, true, size);
}

// Ops with many inputs that have to fit one another.
TEST_F(ImportRanks, FusedOps) {
  for (ArrayRef<onnx::OnnxOp> table :
       {onnx::attentionOps(), onnx::fusedAttentionOps(), onnx::fusedNormOps(), onnx::fusedProductOps()})
    for (const onnx::OnnxOp &op : table)
      for (auto [type, count] : {std::pair{f32, 4}, {i64, 7}, {f32, 11}})
        for (int first = 0; first < 6; ++first)
          for (int others = 0; others < 6; ++others)
            check(op, type, count, first, others, type);
}

} // namespace
} // namespace hpc
