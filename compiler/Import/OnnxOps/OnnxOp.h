// How an ONNX op is imported: a function from a node to values, listed in a table by family.
// A function reads inputs and attributes through NodeImport; its mistakes and the model's end up in the builder's
// status.
#pragma once

#include "compiler/Import/GraphBuilder.h"
#include "compiler/Import/OnnxModel.h"
#include "llvm/ADT/SmallBitVector.h"

#include <set>

namespace hpc::onnx {

/// The user's options for the import, and notes of its results.
struct ImportMode {
  bool inference = false;            ///< nodes that the exporter left in training mode behave as in inference
  bool training = false;             ///< the graph becomes a training step: such nodes draw random numbers
  std::vector<std::string> switched; ///< nodes whose behaviour `inference` changed
  std::vector<std::string> smoothed; ///< losses whose label smoothing the exporter has left out
  std::vector<std::string> settled;  ///< batch norms of a training step that normalise by statistics of the file
  int64_t dropouts = 0;              ///< how many so far; the number separates their random numbers
  std::map<std::string, int64_t> dims; ///< sizes of the model's symbols
};

/// Imports subgraphs in place, for ops that choose or repeat them.
class BodyImporter {
public:
  virtual ~BodyImporter() = default;
  /// The subgraph's outputs for these inputs. After an error, which is in the builder, they may be fewer or placeholders.
  virtual SmallVector<Value> importBody(const Node &node, const Subgraph &graph, ArrayRef<Value> inputs) = 0;
  /// The same, but returns the error instead of leaving it in the builder.
  virtual Expected<SmallVector<Value>> tryBody(const Node &node, const Subgraph &graph, ArrayRef<Value> inputs) = 0;
};

class NodeImport {
public:
  NodeImport(GraphBuilder &builder, const Node &node, int64_t version, ArrayRef<Value> inputs, ImportMode &mode,
             BodyImporter &bodies)
      : b(builder), node(node), version(version), mode(mode), bodies(bodies), inputs(inputs), asked(inputs.size()) {}

  GraphBuilder &b;
  const Node &node;
  int64_t version; ///< of the opset that the model imports for the op's domain
  ImportMode &mode;
  BodyImporter &bodies;

  bool has(size_t index) {
    if (index >= inputs.size())
      return false;
    asked.set(index);
    return bool(inputs[index]);
  }
  /// The input, a tensor, or an error and a placeholder.
  Value in(size_t index) {
    Value input = any(index);
    return b.isSequence(input)
               ? unsupported("input " + std::to_string(index) + " is a sequence of tensors, and it takes a tensor")
               : input;
  }
  /// The input, which may be a sequence as well.
  Value any(size_t index) {
    return has(index) ? inputs[index] : b.fail("input " + std::to_string(index) + " is missing");
  }
  /// The tensors of the input, a sequence, or an error and none.
  SmallVector<Value> sequence(size_t index) {
    Value input = any(index);
    if (b.status().ok() && !b.isSequence(input))
      b.fail("input " + std::to_string(index) + " is a tensor, and it takes a sequence of them");
    return b.parts(input);
  }
  /// An error where inputs have different float types and the op's schema has one for all of them.
  void checkFloatTypes();
  /// For an op with any number of inputs, which reads them all.
  size_t numInputs() {
    asked.set();
    return inputs.size();
  }
  /// Marks an input that does not affect the result as read.
  void ignore(size_t index) { (void)has(index); }
  /// The first input of the node that the op has not read and so does not support.
  std::optional<size_t> unknownInput() const {
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i] && !asked[i])
        return i;
    return std::nullopt;
  }
  bool wantsOutput(size_t index) const { return index < node.outputs.size() && !node.outputs[index].empty(); }

  /// Marks attributes without effect here as read: hints, facts that shapes have, attributes of absent inputs or flags.
  void ignoreAttributes(ArrayRef<const char *> names) { askedAttributes.insert(names.begin(), names.end()); }
  /// The first attribute with an effect that the op has not read and so does not support.
  std::optional<std::string> unknownAttribute() const;

  /// Attributes; an error if one has another kind than requested.
  bool hasAttribute(const std::string &name) const {
    askedAttributes.insert(name);
    return node.attributes.count(name);
  }
  int64_t integer(const std::string &name, int64_t fallback);
  double number(const std::string &name, double fallback);
  std::string text(const std::string &name, const std::string &fallback);
  std::optional<SmallVector<int64_t>> integers(const std::string &name);
  std::shared_ptr<const StoredTensor> tensor(const std::string &name);
  /// Null, with an error, if the node has no such subgraph.
  const Subgraph *graph(const std::string &name);
  SmallVector<Value> importBody(const Subgraph &graph, ArrayRef<Value> inputs) {
    return bodies.importBody(node, graph, inputs);
  }
  Expected<SmallVector<Value>> tryBody(const Subgraph &graph, ArrayRef<Value> inputs) {
    return bodies.tryBody(node, graph, inputs);
  }

  /// A dim from an axis that may count from the end; an error and 0 when it is out of range.
  int64_t axis(int64_t value, int64_t rank);
  /// The same for a list, sorted; an error when one comes twice.
  SmallVector<int64_t> axes(ArrayRef<int64_t> values, int64_t rank);
  /// Attribute `name` (older opsets) or input `index`; nullopt if the node has neither.
  std::optional<SmallVector<int64_t>> attributeOrInput(const std::string &name, size_t index);

  /// The arguments of the call of `op`, as "aten.embedding", from which PyTorch's exporter made the node: "%ids", "0".
  /// None if the call is another one, or the file has no note of it.
  SmallVector<StringRef> torchArguments(StringRef op) const;

  /// Another node on `values` in the place of this one; both as long as they live.
  NodeImport in(const Node &other, int64_t version, ArrayRef<Value> values) const {
    return {b, other, version, values, mode, bodies};
  }

  /// Inputs that replace the node's own; valid as long as `values` lives.
  void replaceInputs(ArrayRef<Value> values) { inputs = values; }
  ArrayRef<Value> allInputs() const { return inputs; }

  Value unsupported(const std::string &what) { return b.fail(what, ErrorKind::Unsupported); }

private:
  const Attribute *find(const std::string &name, Attribute::Kind kind);
  ArrayRef<Value> inputs;
  llvm::SmallBitVector asked;
  mutable std::set<std::string> askedAttributes;
};

using Results = SmallVector<Value>;

/// A node of several steps whose floats all have one type: 16-bit floats are computed with in f32, and the results are
/// rounded once.
Results stepsInF32(NodeImport &n, Results (*steps)(NodeImport &));
template <Results (*steps)(NodeImport &)> Results inF32(NodeImport &n) { return stepsInF32(n, steps); }

struct OnnxOp {
  const char *name;
  int64_t since; ///< the first opset in which this function is right
  Results (*import)(NodeImport &);
  const char *domain = "";
};

// One table per file of this folder. An op may be listed several times: the highest `since` that is not above the
// model's opset counts.
ArrayRef<OnnxOp> elementwiseOps();
ArrayRef<OnnxOp> activationOps();
ArrayRef<OnnxOp> constantOps();
ArrayRef<OnnxOp> shapeOps();
ArrayRef<OnnxOp> sliceOps();
ArrayRef<OnnxOp> indexOps();
ArrayRef<OnnxOp> contractionOps();
ArrayRef<OnnxOp> reduceOps();
ArrayRef<OnnxOp> normOps();
ArrayRef<OnnxOp> attentionOps();
ArrayRef<OnnxOp> convolutionOps();
ArrayRef<OnnxOp> poolingOps();
ArrayRef<OnnxOp> channelNormOps();
ArrayRef<OnnxOp> resizeOps();
ArrayRef<OnnxOp> spatialOps();
ArrayRef<OnnxOp> gridSampleOps();
ArrayRef<OnnxOp> quantizedConvolutionOps();
ArrayRef<OnnxOp> fusedAttentionOps();
ArrayRef<OnnxOp> fusedNormOps();
ArrayRef<OnnxOp> fusedProductOps();
ArrayRef<OnnxOp> controlFlowOps();
ArrayRef<OnnxOp> orderOps();
ArrayRef<OnnxOp> scatterOps();
ArrayRef<OnnxOp> einsumOps();
ArrayRef<OnnxOp> lossOps();
ArrayRef<OnnxOp> quantizationOps();
ArrayRef<OnnxOp> matrixOps();
ArrayRef<OnnxOp> signalOps();
ArrayRef<OnnxOp> fourierOps();
ArrayRef<OnnxOp> selectionOps();
ArrayRef<OnnxOp> sequenceOps();
ArrayRef<OnnxOp> recurrentOps();
ArrayRef<OnnxOp> linearAttentionOps();
/// Ops that no plan can run, each with the reason, which is the message.
ArrayRef<OnnxOp> quantizedOps();
ArrayRef<OnnxOp> featureOps();
ArrayRef<OnnxOp> refusedOps();

/// Null when no table has it.
const OnnxOp *findOnnxOp(const std::string &domain, const std::string &name, int64_t version);
/// All tables, for tests and docs.
std::vector<OnnxOp> allOnnxOps();

} // namespace hpc::onnx
