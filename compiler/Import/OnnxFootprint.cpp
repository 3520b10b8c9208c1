// How much memory a model's structs will take, before protobuf makes them.
// Counted by the schema's own nesting: every field has a price, roughly what protobuf's object and ours for it weigh.
#include "compiler/Import/WireFormat.h"

#include <algorithm>

namespace hpc::onnx {
namespace {

enum class Message { Model, Graph, Function, Node, Attribute, Tensor, Info };

/// What a field of a message costs, and the message inside, if one is looked into.
struct Price {
  uint64_t number;
  int64_t bytes;
  const Message *inner = nullptr;
  int64_t perPayloadByte = 0; ///< packed varints of one byte become numbers of eight, twice
};

constexpr Message graph = Message::Graph, function = Message::Function, node = Message::Node,
                  attribute = Message::Attribute, tensor = Message::Tensor, info = Message::Info;
constexpr int64_t anyField = 64;

const std::vector<Price> &pricesOf(Message message) {
  static const std::vector<Price> model = {{7, 1000, &graph}, {25, 1000, &function}},
                                  ofGraph = {{1, 800, &node}, {5, 600, &tensor}, {11, 500, &info}, {12, 500, &info},
                                             {13, 300, &info}, {14, 300}, {15, 1000}, {16, 200}},
                                  ofFunction = {{4, 100}, {5, 100}, {7, 800, &node}, {9, 100}, {11, 500, &attribute}},
                                  ofNode = {{1, 100}, {2, 100}, {5, 500, &attribute}, {9, 200}},
                                  ofAttribute = {{5, 600, &tensor}, {6, 1000, &graph}, {7, 16, nullptr, 2},
                                                 {8, 16, nullptr, 16}, {9, 100}, {10, 600, &tensor}, {11, 1000, &graph}},
                                  ofTensor = {{1, 16, nullptr, 16}, {5, 16, nullptr, 8}, {6, 100}, {7, 16, nullptr, 16},
                                              {11, 16, nullptr, 16}, {13, 300}},
                                  ofInfo = {{1, 100, &info}, {2, 100, &info}};
  switch (message) {
  case Message::Model:
    return model;
  case Message::Graph:
    return ofGraph;
  case Message::Function:
    return ofFunction;
  case Message::Node:
    return ofNode;
  case Message::Attribute:
    return ofAttribute;
  case Message::Tensor:
    return ofTensor;
  case Message::Info:
    return ofInfo;
  }
  return model;
}

int64_t priceOf(const std::byte *data, int64_t begin, int64_t end, Message message, int depth) {
  constexpr int deepest = 100; // protobuf refuses what nests deeper
  int64_t total = 0;
  const std::vector<Price> &prices = pricesOf(message);
  Fields fields(data, begin, end);
  for (Field field; fields.next(field);) {
    auto known = std::find_if(prices.begin(), prices.end(), [&](const Price &each) { return each.number == field.number; });
    total += known == prices.end() ? anyField : known->bytes;
    if (known == prices.end() || field.type != 2)
      continue;
    total += known->perPayloadByte * (field.end - field.begin);
    if (known->inner && depth < deepest)
      total += priceOf(data, field.begin, field.end, *known->inner, depth + 1);
  }
  return total;
}

} // namespace

int64_t footprintOf(const std::byte *data, int64_t size) { return priceOf(data, 0, size, Message::Model, 0); }

} // namespace hpc::onnx
