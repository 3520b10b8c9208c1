// Finds where the bytes of a model's initializers lie inside the .onnx file, by walking protobuf's wire format.
// Of several copies of a field the last one counts, as in protobuf itself.
#include "compiler/Import/WireFormat.h"

namespace hpc::onnx {
namespace {

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

} // namespace

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
