// Where values come from: constants, and parameters out of mapped files.
// A file is mapped once per loader; only the bytes of a parameter that is read are touched.
#include "compiler/Dialect/NN/Parameter.h"
#include "compiler/Interpreter/Evaluators.h"
#include "compiler/Interpreter/StoredParameters.h"
#include "runtime/base/File.h"
#include "runtime/base/Int8.h"

namespace hpc {

static Expected<Tensor> inInt8(nn::ParameterOp op, const Tensor &stored) {
  const Lines lines = Lines::along(stored.shape, size_t(*op.getInt8Along()));
  std::vector<std::byte> bytes = tensorToBytes(stored);
  std::vector<float> scales(size_t(lines.count()));
  if (int8Scales(bytes.data(), lines, scales.data()))
    return Status::error(ErrorKind::Model, "parameter '" + op.getName().str() +
                                               "' has an element that is not finite and has no int8 form; leave out "
                                               "--weights=int8");
  if (nn::int8FormOf(op) == nn::Int8Form::Scales) {
    std::vector<int64_t> shape = stored.shape;
    shape.erase(shape.begin() + *op.getInt8Along());
    Tensor result(DType::F32, shape);
    result.floats.assign(scales.begin(), scales.end());
    return result;
  }
  std::vector<int8_t> codes(size_t(stored.size()));
  toInt8(bytes.data(), lines, scales.data(), 0, stored.size(), codes.data());
  const bool isCodes = nn::int8FormOf(op) == nn::Int8Form::Codes;
  Tensor result(isCodes ? DType::I8 : DType::F32, stored.shape);
  for (int64_t i = 0; i < stored.size(); ++i)
    if (isCodes)
      result.ints[size_t(i)] = codes[size_t(i)];
    else // exact in double, as the sum of products that is scaled at the end takes it
      result.floats[size_t(i)] = double(codes[size_t(i)]) * double(scales[size_t(lines.of(i))]);
  return result;
}

ParameterLoader storedParametersFromFiles(const std::string &folder) {
  auto files = std::make_shared<std::map<std::string, MappedFile>>();
  return [folder, files](nn::ParameterOp op, ArrayRef<int64_t> storedShape) -> Expected<Tensor> {
    std::string what = "parameter '" + op.getName().str() + "'";
    if (std::optional<ElementsAttr> value = op.getValue()) {
      Expected<Tensor> tensor = tensorFromAttr(*value);
      if (!tensor.ok())
        return tensor.status().at(what);
      if (tensor->size() != elementCount(storedShape))
        return Status::error(ErrorKind::Model, what + " has another number of elements than its type");
      tensor->shape = storedShape.vec();
      return tensor;
    }
    std::string path = resolvePath(folder, op.getFile().str());
    auto found = files->find(path);
    if (found == files->end()) {
      Expected<MappedFile> file = MappedFile::open(path);
      if (!file.ok())
        return file.status().at(what);
      found = files->emplace(path, std::move(*file)).first;
    }
    DType dtype = dtypeOf(op.storedElementType());
    Expected<const std::byte *> bytes =
        found->second.range(op.getOffset(), elementCount(storedShape) * byteSize(dtype), what);
    if (!bytes.ok())
      return bytes.status();
    return tensorFromBytes(dtype, storedShape, *bytes);
  };
}

ParameterLoader parametersFromFiles(const std::string &folder) {
  return [stored = storedParametersFromFiles(folder)](nn::ParameterOp op, ArrayRef<int64_t> shape) -> Expected<Tensor> {
    if (!op.getInt8Along())
      return stored(op, shape);
    Expected<Tensor> tensor = stored(op, nn::storedShapeOf(op));
    return tensor.ok() ? inInt8(op, *tensor) : std::move(tensor);
  };
}

namespace interpreter {
void addSources(Evaluators &evaluators) {
  evaluators.add<nn::ConstantOp>([](nn::ConstantOp op, Operands) -> Results {
    Expected<Tensor> tensor = tensorFromAttr(op.getValue());
    if (!tensor.ok())
      return tensor.status().at(describeOp(op));
    return one(std::move(*tensor));
  });
}
} // namespace interpreter
} // namespace hpc
