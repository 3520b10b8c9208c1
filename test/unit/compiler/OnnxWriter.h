// Writes small ONNX files for tests, straight in protobuf's wire format: a field is its number, then a varint or a
// length and bytes. Only what tests need; no library, so that malformed files can be written as well.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace hpc::onnxwriter {

inline std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7)
    bytes += char(value | 128);
  return bytes + char(value);
}
inline std::string number(int field, int64_t value) { return varint(uint64_t(field) << 3) + varint(uint64_t(value)); }
inline std::string bytes(int field, const std::string &content) {
  return varint(uint64_t(field) << 3 | 2) + varint(content.size()) + content;
}

constexpr int f32 = 1, i64 = 7, boolean = 9;

template <typename Element> std::string raw(const std::vector<Element> &elements) {
  return std::string(reinterpret_cast<const char *>(elements.data()), elements.size() * sizeof(Element));
}

/// A TensorProto without its data.
inline std::string tensorHead(const std::string &name, int type, const std::vector<int64_t> &dims) {
  std::string proto;
  for (int64_t dim : dims)
    proto += number(1, dim);
  return proto + number(2, type) + bytes(8, name);
}
template <typename Element>
std::string tensor(const std::string &name, int type, const std::vector<int64_t> &dims,
                   const std::vector<Element> &elements) {
  return tensorHead(name, type, dims) + bytes(9, raw(elements));
}
inline std::string floats(const std::string &name, const std::vector<int64_t> &dims,
                          const std::vector<float> &elements) {
  return tensor(name, f32, dims, elements);
}
inline std::string ints(const std::string &name, const std::vector<int64_t> &dims,
                        const std::vector<int64_t> &elements) {
  return tensor(name, i64, dims, elements);
}
inline std::string externalTensor(const std::string &name, const std::vector<int64_t> &dims,
                                  const std::vector<std::pair<std::string, std::string>> &entries) {
  std::string proto = tensorHead(name, f32, dims) + number(14, 1);
  for (const auto &[key, value] : entries)
    proto += bytes(13, bytes(1, key) + bytes(2, value));
  return proto;
}

inline std::string attribute(const std::string &name, int64_t value) {
  return bytes(1, name) + number(3, value) + number(20, 2);
}
inline std::string attribute(const std::string &name, const std::vector<int64_t> &values) {
  std::string proto = bytes(1, name);
  for (int64_t value : values)
    proto += number(8, value);
  return proto + number(20, 7);
}
inline std::string textAttribute(const std::string &name, const std::string &text) {
  return bytes(1, name) + bytes(4, text) + number(20, 3);
}
/// Inside a function: the function's own attribute `from`.
inline std::string attributeFrom(const std::string &name, const std::string &from) {
  return bytes(1, name) + bytes(21, from) + number(20, 2);
}

inline std::string node(const std::string &op, const std::vector<std::string> &inputs,
                        const std::vector<std::string> &outputs, const std::vector<std::string> &attributes = {},
                        const std::string &name = "", const std::string &domain = "") {
  std::string proto;
  for (const std::string &input : inputs)
    proto += bytes(1, input);
  for (const std::string &output : outputs)
    proto += bytes(2, output);
  proto += bytes(3, name) + bytes(4, op) + bytes(7, domain);
  for (const std::string &each : attributes)
    proto += bytes(5, each);
  return proto;
}

/// Dims are numbers ("4") or symbols.
inline std::string value(const std::string &name, int type, const std::vector<std::string> &dims) {
  std::string shape;
  for (const std::string &dim : dims)
    shape +=
        bytes(1, dim.find_first_not_of("0123456789") == std::string::npos && !dim.empty() ? number(1, std::stoll(dim))
                                                                                          : bytes(2, dim));
  return bytes(1, name) + bytes(2, bytes(1, number(1, type) + bytes(2, shape)));
}

/// What PyTorch's exporter says of an initializer: the ValueInfoProto with one entry of metadata.
inline std::string saidOf(const std::string &initializer, const std::string &key, const std::string &value) {
  return bytes(1, initializer) + bytes(4, bytes(1, key) + bytes(2, value));
}
/// "PARAMETER", "BUFFER" or "CONSTANT_TENSOR".
inline std::string kindOf(const std::string &initializer, const std::string &kind) {
  return saidOf(initializer, "pkg.torch.export.graph_signature.InputSpec.kind", kind);
}

struct Graph {
  std::vector<std::string> nodes, initializers, inputs, outputs, values, functions;
  int64_t opset = 18;

  /// A GraphProto.
  std::string proto() const {
    std::string graph;
    for (const std::string &each : nodes)
      graph += bytes(1, each);
    graph += bytes(2, "graph");
    for (const std::string &each : initializers)
      graph += bytes(5, each);
    for (const std::string &each : inputs)
      graph += bytes(11, each);
    for (const std::string &each : outputs)
      graph += bytes(12, each);
    for (const std::string &each : values)
      graph += bytes(13, each);
    return graph;
  }

  /// A whole ModelProto.
  std::string model() const {
    std::string model = number(1, 8) + bytes(7, proto()) + bytes(8, bytes(1, "") + number(2, opset)) +
                        bytes(8, bytes(1, "local") + number(2, 1)) +
                        bytes(8, bytes(1, "com.microsoft") + number(2, 1));
    for (const std::string &each : functions)
      model += bytes(25, each);
    return model;
  }
};

/// A branch, or the body of a loop.
inline std::string attribute(const std::string &name, const Graph &graph) {
  return bytes(1, name) + bytes(6, graph.proto()) + number(20, 5);
}

} // namespace hpc::onnxwriter
