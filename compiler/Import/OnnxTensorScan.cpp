// Finds where the bytes of a model's initializers lie inside the .onnx file, by walking protobuf's wire format, and
// leaves them out of it.
// The last of several copies of a field counts, as in protobuf itself.
#include "compiler/Import/OnnxTensorScan.h"

namespace hpc::onnx {
namespace {

using wire::Field, wire::Fields;

// Field numbers of onnx.proto.
constexpr uint64_t modelGraph = 7, graphInitializer = 5, tensorFloats = 4, tensorRaw = 9, tensorDoubles = 10;

StoredBytes scanTensor(const std::byte *data, const Field &tensor) {
  StoredBytes found;
  int packedRuns = 0;
  Fields fields(data, tensor.begin, tensor.end);
  for (Field field; fields.next(field);) {
    bool packed = field.number == tensorFloats || field.number == tensorDoubles;
    if (field.type == 2 && (field.number == tensorRaw || packed))
      found = {field.begin, field.end - field.begin};
    if (packed && (++packedRuns > 1 || field.type != 2))
      return {};
  }
  return found;
}

enum class Level { Model, Graph, Tensor };

/// Appends the fields of a message, those that hold elements empty. False where it is malformed.
bool appendWithoutElements(const std::byte *data, int64_t begin, int64_t end, Level level, std::string &out) {
  constexpr int64_t fewBytes = 1024; // stay: folding reads them from the struct
  Fields fields(data, begin, end);
  for (Field field; fields.next(field);) {
    bool holdsElements = level == Level::Tensor && field.type == 2 && field.end - field.begin > fewBytes &&
                         (field.number == tensorRaw || field.number == tensorFloats || field.number == tensorDoubles);
    bool isInner = field.type == 2 && ((level == Level::Model && field.number == modelGraph) ||
                                       (level == Level::Graph && field.number == graphInitializer));
    if (!holdsElements && !isInner) {
      out.append(reinterpret_cast<const char *>(data) + field.first, size_t(field.last - field.first));
      continue;
    }
    std::string inner;
    if (isInner && !appendWithoutElements(data, field.begin, field.end,
                                          level == Level::Model ? Level::Graph : Level::Tensor, inner))
      return false;
    out += wire::varint(field.number << 3 | 2) + wire::varint(inner.size()) + inner;
  }
  return fields.atEnd();
}

} // namespace

std::string withoutStoredBytes(const std::byte *data, int64_t size) {
  int64_t stored = 0;
  for (const StoredBytes &each : scanInitializers(data, size))
    stored += each.bytes;
  std::string out;
  return stored > size / 2 && appendWithoutElements(data, 0, size, Level::Model, out) ? out : "";
}

std::vector<StoredBytes> scanInitializers(const std::byte *data, int64_t size) {
  std::vector<StoredBytes> found;
  Fields model(data, 0, size);
  for (Field graph; model.next(graph);) {
    if (graph.number != modelGraph || graph.type != 2)
      continue;
    Fields fields(data, graph.begin, graph.end);
    for (Field tensor; fields.next(tensor);)
      if (tensor.number == graphInitializer && tensor.type == 2)
        found.push_back(scanTensor(data, tensor));
  }
  return found;
}

} // namespace hpc::onnx
