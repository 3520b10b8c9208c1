// Reading of a node's inputs and attributes, and the look-up over all tables.
#include "compiler/Import/OnnxOps/OnnxOp.h"

namespace hpc::onnx {

const Attribute *NodeImport::find(const std::string &name, Attribute::Kind kind) {
  askedAttributes.insert(name);
  auto found = node.attributes.find(name);
  if (found == node.attributes.end())
    return nullptr;
  if (found->second.kind == kind)
    return &found->second;
  b.fail("attribute '" + name + "' has the wrong kind of value");
  return nullptr;
}

/// Ops whose schemas have more than one float type (ONNX 1.23, ONNX Runtime 1.32), in opsets below the one from which
/// they have one; 0 is none. Bodies take the types of their nodes.
static const llvm::StringMap<int64_t> opsOfSeveralFloatTypes = {
    {"Attention", 0},       {"BatchNormalization", 0}, {"CastLike", 0}, {"DequantizeLinear", 0}, {"Dropout", 0},
    {"GridSample", 0},      {"GroupQueryAttention", 0}, {"If", 0},      {"LayerNormalization", 17}, {"LinearAttention", 0},
    {"Loop", 0},            {"MatMulNBits", 0},        {"OneHot", 0},   {"Pow", 0},              {"QuantizeLinear", 0},
    {"RMSNormalization", 0}, {"Resize", 0},            {"Scan", 0},     {"SequenceMap", 0},      {"SimplifiedLayerNormalization", 0},
    {"Upsample", 0},
};

void NodeImport::checkFloatTypes() {
  if (auto several = opsOfSeveralFloatTypes.find(node.op);
      several != opsOfSeveralFloatTypes.end() && (several->second == 0 || version < several->second))
    return;
  std::optional<size_t> first;
  for (size_t i = 0; i < inputs.size() && b.status().ok(); ++i) {
    if (!inputs[i] || b.isSequence(inputs[i]) || !isFloat(b.dtype(inputs[i])))
      continue;
    if (!first)
      first = i;
    else if (b.dtype(inputs[i]) != b.dtype(inputs[*first]))
      b.fail("input " + std::to_string(i) + ", '" + node.inputs[i] + "', is " + name(b.dtype(inputs[i])) + " and input " +
             std::to_string(*first) + ", '" + node.inputs[*first] + "', is " + name(b.dtype(inputs[*first])) + "; " + node.op +
             " takes floats of one type: put a Cast before it");
  }
}

std::optional<std::string> NodeImport::unknownAttribute() const {
  for (const auto &[name, value] : node.attributes)
    if (!askedAttributes.count(name) && (value.i != 0 || value.f != 0 || !value.s.empty() || !value.ints.empty() ||
                                         !value.floats.empty() || !value.strings.empty()))
      return name;
  return std::nullopt;
}

int64_t NodeImport::integer(const std::string &name, int64_t fallback) {
  const Attribute *attribute = find(name, Attribute::Int);
  return attribute ? attribute->i : fallback;
}

double NodeImport::number(const std::string &name, double fallback) {
  const Attribute *attribute = find(name, Attribute::Float);
  return attribute ? attribute->f : fallback;
}

std::string NodeImport::text(const std::string &name, const std::string &fallback) {
  const Attribute *attribute = find(name, Attribute::String);
  return attribute ? attribute->s : fallback;
}

std::optional<SmallVector<int64_t>> NodeImport::integers(const std::string &name) {
  const Attribute *attribute = find(name, Attribute::Ints);
  if (!attribute)
    return std::nullopt;
  return SmallVector<int64_t>(attribute->ints.begin(), attribute->ints.end());
}

std::shared_ptr<const StoredTensor> NodeImport::tensor(const std::string &name) {
  const Attribute *attribute = find(name, Attribute::TensorValue);
  return attribute ? attribute->tensor : nullptr;
}

const Subgraph *NodeImport::graph(const std::string &name) {
  const Attribute *attribute = find(name, Attribute::Graph);
  if (!attribute)
    b.fail("it has no subgraph '" + name + "'");
  return attribute ? attribute->graph.get() : nullptr;
}

SmallVector<StringRef> NodeImport::torchArguments(StringRef op) const {
  SmallVector<StringRef> arguments;
  StringRef call = node.torchCall;
  if (call.consume_front(op) && call.starts_with("."))
    call.split("args = (").second.split("), kwargs").first.split(arguments, ", ");
  return arguments;
}

int64_t NodeImport::axis(int64_t value, int64_t rank) {
  if (value >= -rank && value < rank)
    return value < 0 ? value + rank : value;
  b.fail("axis " + std::to_string(value) + " is out of range for rank " + std::to_string(rank));
  return 0;
}

SmallVector<int64_t> NodeImport::axes(ArrayRef<int64_t> values, int64_t rank) {
  SmallVector<int64_t> result;
  for (int64_t value : values) {
    int64_t dim = axis(value, rank);
    if (llvm::is_contained(result, dim))
      b.fail("axis " + std::to_string(value) + " is named twice");
    else
      result.push_back(dim);
  }
  llvm::sort(result);
  return result;
}

std::optional<SmallVector<int64_t>> NodeImport::attributeOrInput(const std::string &name, size_t index) {
  if (hasAttribute(name))
    return integers(name);
  if (has(index))
    return b.integers(in(index), name);
  return std::nullopt;
}

std::vector<OnnxOp> allOnnxOps() {
  std::vector<OnnxOp> all;
  for (ArrayRef<OnnxOp> table : {elementwiseOps(), activationOps(), constantOps(), shapeOps(), sliceOps(), indexOps(),
                                 contractionOps(), reduceOps(), normOps(), attentionOps(),
                                 convolutionOps(), poolingOps(), channelNormOps(), resizeOps(), spatialOps(),
                                 gridSampleOps(), quantizedConvolutionOps(), fusedAttentionOps(), fusedNormOps(),
                                 fusedProductOps(), controlFlowOps(), orderOps(), scatterOps(), einsumOps(), lossOps(),
                                 quantizationOps(), matrixOps(), signalOps(), fourierOps(), selectionOps(),
                                 sequenceOps(), recurrentOps(), linearAttentionOps(), quantizedOps(),
                                 featureOps(), refusedOps()})
    all.insert(all.end(), table.begin(), table.end());
  return all;
}

Results stepsInF32(NodeImport &n, Results (*steps)(NodeImport &)) {
  const ArrayRef<Value> inputs = n.allInputs();
  SmallVector<Value> wide;
  DType own = n.has(0) ? n.b.dtype(inputs[0]) : DType::F32;
  if (own != DType::F16 && own != DType::BF16)
    return steps(n);
  for (Value input : inputs)
    wide.push_back(input ? n.b.widened(input) : input);
  n.replaceInputs(wide);
  Results results = steps(n);
  n.replaceInputs(inputs); // which the code after this looks at again
  for (Value &result : results)
    if (n.b.status().ok() && result && n.b.dtype(result) == DType::F32)
      result = n.b.cast(result, own);
  return results;
}

const OnnxOp *findOnnxOp(const std::string &domain, const std::string &name, int64_t version) {
  static const std::vector<OnnxOp> all = allOnnxOps();
  const OnnxOp *best = nullptr;
  for (const OnnxOp &op : all)
    if (name == op.name && domain == op.domain && op.since <= version && (!best || op.since > best->since))
      best = &op;
  return best;
}

} // namespace hpc::onnx
