// Every op of the import on inputs of every rank and number, whether they fit or not: a program or an error that a user can
// act on, never a crash.
#include "test/unit/compiler/ImportFixture.h"
#include "test/unit/compiler/OnnxWriter.h"

#include "compiler/Import/OnnxOps/OnnxOp.h"
#include "runtime/base/File.h"

namespace hpc {
namespace {

using namespace onnxwriter;

struct ImportRanks : testing::Test {
  TemporaryFolder folder;
  MLIRContext context;

  /// `count` inputs, the first of rank `first`, the others of rank `others`; all sizes are 2.
  void check(const onnx::OnnxOp &op, int type, int count, int first, int others) {
    Graph graph;
    graph.opset = op.domain[0] ? 18 : op.since;
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) {
      names.push_back("x" + std::to_string(i));
      graph.inputs.push_back(value(names.back(), type, std::vector<std::string>(size_t(i ? others : first), "2")));
    }
    std::vector<std::string> attributes;
    for (const char *size : {"num_heads", "q_num_heads", "kv_num_heads", "is_causal", "do_rotary", "N", "K"})
      attributes.push_back(attribute(size, int64_t(1)));
    attributes.push_back(attribute("block_size", int64_t(16)));
    graph.nodes = {node(op.name, names, {"y"}, attributes, "n", op.domain)};
    graph.outputs = {value("y", type, {})};
    EXPECT_TRUE(writeFile(folder.file("m.onnx"), graph.model()).ok());
    auto module = importOnnx(folder.file("m.onnx"), {}, &context);
    if (!module.ok())
      EXPECT_TRUE(module.status().kind() == ErrorKind::Model || module.status().kind() == ErrorKind::Unsupported)
          << op.name << " of " << count << " inputs, ranks " << first << " and " << others << ": " << module.status().text();
  }
};

// A function of OnnxOps that trusts a rank reads beside a shape.
TEST_F(ImportRanks, EveryOp) {
  for (const onnx::OnnxOp &op : onnx::allOnnxOps())
    for (int count : {1, 3})
      for (int rank : {0, 1, 2, 4})
        check(op, f32, count, rank, rank);
}

// Ops with many inputs that have to fit one another.
TEST_F(ImportRanks, FusedOps) {
  for (ArrayRef<onnx::OnnxOp> table :
       {onnx::attentionOps(), onnx::fusedAttentionOps(), onnx::fusedNormOps(), onnx::fusedProductOps()})
    for (const onnx::OnnxOp &op : table)
      for (auto [type, count] : {std::pair{f32, 4}, {i64, 7}, {f32, 11}})
        for (int first = 0; first < 6; ++first)
          for (int others = 0; others < 6; ++others)
            check(op, type, count, first, others);
}

} // namespace
} // namespace hpc
