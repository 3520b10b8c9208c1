// Hashes propose, bytes decide. A file is mapped once, and only candidates' bytes are touched: for a transposed pair
// that is no tie, most often one element.
#include "passes/Raise/Ties.h"

#include "compiler/ElementType.h"
#include "compiler/Interpreter/Tensor.h"
#include "runtime/base/File.h"

#include <cstring>

namespace hpc {

namespace {
class Bytes {
public:
  explicit Bytes(const std::string &folder) : folder(folder) {}

  /// The stored bytes of a parameter, row-major.
  Expected<const std::byte *> of(nn::ParameterOp op) {
    std::string what = "parameter '" + op.getName().str() + "'";
    if (std::optional<ElementsAttr> value = op.getValue()) {
      std::vector<std::byte> &bytes = inlineBytes[op];
      if (bytes.empty()) {
        Expected<Tensor> tensor = tensorFromAttr(*value);
        if (!tensor.ok())
          return tensor.status().at(what);
        bytes = tensorToBytes(*tensor);
      }
      return static_cast<const std::byte *>(bytes.data());
    }
    std::string path = resolvePath(folder, op.getFile().str());
    auto found = files.find(path);
    if (found == files.end()) {
      Expected<MappedFile> file = MappedFile::open(path);
      if (!file.ok())
        return file.status().at(what);
      found = files.emplace(path, std::move(*file)).first;
    }
    return found->second.range(op.getOffset(), op.getBytes(), what);
  }

private:
  std::string folder;
  std::map<std::string, MappedFile> files;
  llvm::DenseMap<Operation *, std::vector<std::byte>> inlineBytes;
};
} // namespace

static bool isFilled(const std::byte *data, int64_t count, int64_t width) {
  return count < 2 || !std::memcmp(data, data + width, size_t((count - 1) * width));
}

/// Whether b [columns, rows] is a [rows, columns] transposed.
static bool isTranspose(const std::byte *a, const std::byte *b, int64_t rows, int64_t columns, int64_t width) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      if (std::memcmp(a + (i * columns + j) * width, b + (j * rows + i) * width, size_t(width)))
        return false;
  return true;
}

/// Whether the hashes allow equal content; values have none.
static bool mayBeEqual(nn::ParameterOp a, nn::ParameterOp b) {
  return a.getHashes().empty() || b.getHashes().empty() || a.getHashes() == b.getHashes();
}

static Expected<std::optional<Tie>> findTie(nn::ParameterOp weight, nn::ParameterOp duplicate, Bytes &bytes) {
  auto type = nn::tensorType(weight.getResult()), otherType = nn::tensorType(duplicate.getResult());
  ArrayRef<int64_t> shape = type.getShape(), other = otherType.getShape();
  bool isEqualShape = type == otherType;
  bool isMirrored = type.getElementType() == otherType.getElementType() && shape.size() == 2 && other.size() == 2 &&
                    shape[0] == other[1] && shape[1] == other[0];
  if (!isMirrored && !(isEqualShape && mayBeEqual(weight, duplicate)))
    return std::optional<Tie>();
  Expected<const std::byte *> a = bytes.of(weight), b = bytes.of(duplicate);
  if (!a.ok())
    return a.status();
  if (!b.ok())
    return b.status();
  int64_t width = byteSize(dtypeOf(type)), count = type.getNumElements();
  std::optional<Tie> tie;
  if (isEqualShape && mayBeEqual(weight, duplicate) && !std::memcmp(*a, *b, size_t(count * width)))
    tie = Tie{weight, duplicate, false};
  else if (isMirrored && isTranspose(*a, *b, shape[0], shape[1], width))
    tie = Tie{weight, duplicate, true};
  if (tie && isFilled(*a, count, width))
    tie.reset();
  return tie;
}

Expected<std::vector<Tie>> findTies(func::FuncOp function, const std::string &folder) {
  Bytes bytes(folder);
  // Tables first: an embedding needs its rows as they are stored, a matmul takes either way.
  auto isTable = [](nn::ParameterOp op) {
    return llvm::any_of(op->getUses(), [](OpOperand &use) {
      return isa<nn::EmbeddingOp>(use.getOwner()) && use.getOperandNumber() == 0;
    });
  };
  SmallVector<nn::ParameterOp> parameters;
  for (bool tables : {true, false})
    for (nn::ParameterOp op : function.getOps<nn::ParameterOp>())
      if (isTable(op) == tables)
        parameters.push_back(op);
  // Only weights of one type and extents, in either order, can be tied.
  std::map<std::pair<int, SmallVector<int64_t>>, std::vector<nn::ParameterOp>> distinct;
  std::vector<Tie> ties;
  for (nn::ParameterOp parameter : parameters) {
    auto type = nn::tensorType(parameter.getResult());
    SmallVector<int64_t> extents(type.getShape());
    if (extents.size() == 2)
      llvm::sort(extents);
    std::vector<nn::ParameterOp> &others = distinct[{int(dtypeOf(type)), extents}];
    std::optional<Tie> tie;
    for (nn::ParameterOp other : others) {
      Expected<std::optional<Tie>> found = findTie(other, parameter, bytes);
      if (!found.ok())
        return found.status();
      if ((tie = *found))
        break;
    }
    if (tie)
      ties.push_back(*tie);
    else
      others.push_back(parameter);
  }
  return ties;
}

} // namespace hpc
