// An ONNX file as plain structs, without protobuf and without MLIR, and the steps on it before the import. Weights are
// references into mapped files that live as long as the model.
#pragma once

#include "compiler/Import/NarrowTypes.h"
#include "runtime/base/DType.h"
#include "runtime/base/File.h"
#include "runtime/base/Status.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace hpc::onnx {

/// ONNX's number of an element type (TensorProto.DataType) as a DType; nothing for types that we do not have.
std::optional<DType> dtypeOfCode(int64_t code);
/// Its name, also for types that we do not have.
std::string typeNameOfCode(int64_t code);

/// An initializer's role by PyTorch's exporter: a parameter, which an optimizer would get, or a buffer of a module or a
/// tensor in its code, as rotary frequencies are.
enum class WeightKind { Unsaid, Parameter, Buffer };

/// An initializer or a constant: row-major, little endian, bool as one byte.
struct StoredTensor {
  std::string name;
  std::optional<DType> dtype; ///< none: a type that DType does not have, named by `typeName`
  std::string typeName;
  const NarrowType *narrow = nullptr; ///< a type that is only stored; `dtype` is then its storage type
  std::vector<int64_t> shape;
  std::string file;   ///< the file that holds the bytes; empty when they are stored in no mappable form
  int64_t offset = 0; ///< of the bytes in `file`
  int64_t bytes = 0;
  const std::byte *data = nullptr;               ///< unaligned; null when there are no bytes, or isAbsent
  std::shared_ptr<std::vector<std::byte>> owned; ///< holds `data` if no file does
  bool isConstant = false; ///< its content shall be known, whatever its type: no weight
  bool isDefault = false;  ///< value of an input that a run may replace
  WeightKind kind = WeightKind::Unsaid;
  std::vector<std::string> madeOf; ///< names of the tensors, not in the file, that PyTorch's exporter computed it from
  bool isExporters = false; ///< made by that exporter, and in no state of the model

  /// External data that was not read: `file` and `offset` are its place, its content is unknown.
  bool isAbsent() const { return bytes > 0 && !data; }
  int64_t elements() const { return dtype ? bytes / byteSize(*dtype) : 0; }
};

struct Subgraph;

struct Attribute {
  enum Kind { Int, Float, String, TensorValue, Graph, Ints, Floats, Strings, Other } kind = Other;
  int64_t i = 0;
  float f = 0;
  std::string s;
  std::vector<int64_t> ints;
  std::vector<float> floats;
  std::vector<std::string> strings;
  std::shared_ptr<const StoredTensor> tensor;
  std::shared_ptr<const Subgraph> graph; ///< a branch or the body of a loop
  std::string reference; ///< inside a function: the function's attribute that this one takes its value from
};

struct Node {
  std::string name; ///< as stored, or the first output's name
  std::string op, domain, overload;
  std::optional<int64_t> version;           ///< of the opset, if a function imports its own; otherwise the model's
  std::vector<std::string> inputs, outputs; ///< "" = an optional one left out
  std::map<std::string, Attribute> attributes;
  std::string modulePath; ///< "transformer.h.0.attn", from the exporter's metadata or the node's name
  /// "aten.detach.default](args = (%x,), kwargs = {})": the call that PyTorch's exporter notes for the node, or "".
  std::string torchCall;
  /// Names that its subgraphs read from the graphs around them, each once; separateNames updates them.
  std::vector<std::string> captured;
};

/// A dim of an input: a number, or a name (perhaps an expression) that --dim binds.
struct Dim {
  std::optional<int64_t> size;
  std::string symbol;
};

struct ValueInfo {
  std::string name;
  std::optional<DType> dtype;
  std::string typeName;
  const NarrowType *narrow = nullptr; ///< as StoredTensor's
  bool hasShape = false;
  std::vector<Dim> dims;
};

/// A graph inside a node. Its nodes may read values of the graphs around it.
struct Subgraph {
  std::vector<Node> nodes;
  std::vector<StoredTensor> initializers;
  std::vector<ValueInfo> inputs, outputs;
};

/// A function that the model defines itself.
struct Function {
  std::string name, domain, overload; ///< several may share a name and differ in the overload
  std::vector<std::string> inputs, outputs;
  std::map<std::string, int64_t> opsets; ///< by domain, for its nodes
  std::map<std::string, Attribute> defaults;
  std::vector<Node> nodes;
};

struct Model {
  std::string path;
  int64_t irVersion = 0;
  std::map<std::string, int64_t> opsets; ///< by domain; "" is ONNX's own
  std::vector<Node> nodes;
  std::vector<StoredTensor> initializers;
  std::vector<ValueInfo> inputs, outputs; ///< inputs without those that are initializers
  std::vector<ValueInfo> defaults;        ///< inputs with an initializer as default
  std::vector<Function> functions;
  std::vector<std::shared_ptr<MappedFile>> files; ///< keeps the mappings alive
};

// ---- from a file to nodes in order --------------------------------------------------------------

struct ReadOptions {
  bool withoutWeights = false; ///< external data is not opened, though it may be there
  bool followLinks = false;    ///< external data may be or lie beyond links, as in the model cache of a hub
};

/// Reads a file of any IR version and skips newer fields. A tensor is absent if its file of external data does not
/// exist. Errors: model for faults of the content, io for files that cannot be read.
Expected<Model> readOnnx(const std::string &path, const ReadOptions &options = {});

/// Reads a file that is one TensorProto (the ONNX project's own test data).
Expected<StoredTensor> readTensor(const std::string &path);

/// Values that subgraphs of the node read and do not make: for Node::captured.
std::vector<std::string> capturedNames(const Node &node);

/// The place of a node in the model's own modules ("transformer.h.0.attn"), from the exporter's metadata (PyTorch's
/// dynamo) or the node's name (its tracing exporter). "" if neither has it.
std::string modulePathOf(const std::string &nodeName, const std::map<std::string, std::string> &metadata);

/// PyTorch's exporter's notes about an initializer.
struct Provenance {
  WeightKind kind = WeightKind::Unsaid;
  std::vector<std::string> madeOf;
  bool isInState = true; ///< part of PyTorch's state: neither a constant nor a non-persistent buffer
};
Provenance provenanceOf(const std::map<std::string, std::string> &metadata);
/// The text after "call_function[target=torch.ops." in that exporter's note about a node; "" without one.
std::string torchCallOf(const std::map<std::string, std::string> &metadata);

// Names of values. A name may be made again inside a subgraph (of a function, too), and means another value there.

/// Gives each value a name of its own: inside a subgraph a name that is made more than once becomes "NODE/ATTRIBUTE/name",
/// with all nodes on the way, and so does a node's name. Tensors of Constant nodes are called as their values.
void separateNames(Model &model);
void separateNames(Function &function);
/// All that the model and its subgraphs make.
std::set<std::string> allNames(const Model &model);
/// Initializers of the model and of its subgraphs.
std::vector<const StoredTensor *> storedTensors(const Model &model);
/// The name, with a number after it if it is taken; adds the result to `taken`.
std::string freeName(const std::string &wanted, std::set<std::string> &taken);

/// Functions that a model defines itself, put in the place of the nodes that call them, until no node calls one.
/// Errors: a function that calls itself, or too many nodes.
Status inlineFunctions(Model &model);

/// The nodes that the outputs need, in an order in which every value is made before it is read; file order where that
/// will do. Errors: a value made twice, a value that nothing makes, a cycle.
Expected<std::vector<const Node *>> orderedNodes(const Model &model);
/// The same for a subgraph. Values that its nodes capture count as made.
Expected<std::vector<const Node *>> orderedNodes(const Subgraph &graph, const std::string &place);

} // namespace hpc::onnx
