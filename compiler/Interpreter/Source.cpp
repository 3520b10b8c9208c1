// Where values come from: constants, and parameters out of mapped files.
// A file is mapped once per loader; only the bytes of a parameter that is read are touched.
#include "compiler/Interpreter/Evaluators.h"
#include "runtime/base/File.h"

namespace hpc {

ParameterLoader parametersFromFiles(const std::string &folder) {
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
