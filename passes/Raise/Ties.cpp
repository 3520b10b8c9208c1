// Hashes and corners propose, bytes decide. A file is mapped once, and only candidates' bytes are compared, so the time
// grows with the number of weights and not with that of their pairs.
#include "passes/Raise/Ties.h"

#include "compiler/Dialect/NN/DefaultInputs.h"
#include "compiler/ElementType.h"
#include "compiler/Import/WeightContent.h"
#include "compiler/Interpreter/Tensor.h"
#include "runtime/base/File.h"

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

/// Whether the hashes allow equal content; values have none.
static bool mayBeEqual(nn::ParameterOp a, nn::ParameterOp b) {
  return a.getHashes().empty() || b.getHashes().empty() || a.getHashes() == b.getHashes();
}

namespace {
/// Properties that equal weights, one of them perhaps transposed, share and that are cheap to read: so that few weights
/// are compared with each other. Element [0, 0] and the last one stay where they are under a transpose.
struct TieKey {
  int dtype;
  bool isDefault; ///< a run may give another
  SmallVector<int64_t> extents; ///< sorted where there are two
  std::string place;            ///< of an absent weight
  std::string corners;          ///< of a present one: bytes of the first and the last element

  bool operator<(const TieKey &other) const {
    return std::tie(dtype, isDefault, extents, place, corners) <
           std::tie(other.dtype, other.isDefault, other.extents, other.place, other.corners);
  }
};

class TieFinder {
public:
  TieFinder(ModuleOp module, const std::string &folder) : bytes(folder), defaults(nn::defaultInputs(module)) {}

  /// The tie of a weight to one of an earlier call.
  Expected<std::optional<Tie>> find(nn::ParameterOp parameter) {
    Expected<std::optional<TieKey>> key = keyOf(parameter);
    if (!key.ok())
      return key.status();
    if (!*key)
      return std::optional<Tie>();
    std::vector<nn::ParameterOp> &others = distinct[**key];
    for (nn::ParameterOp other : others) {
      Expected<std::optional<Tie>> tie = compare(other, parameter);
      if (!tie.ok() || *tie)
        return tie;
    }
    others.push_back(parameter);
    return std::optional<Tie>();
  }

private:
  /// Nothing for a weight that is tied to none: no elements, or all the same.
  Expected<std::optional<TieKey>> keyOf(nn::ParameterOp op) {
    auto type = nn::tensorType(op.getResult());
    int64_t width = byteSize(dtypeOf(type)), size = type.getNumElements() * width;
    TieKey key{int(dtypeOf(type)), defaults.contains(op.getName()), SmallVector<int64_t>(type.getShape()), "", ""};
    if (op.isAbsent()) {
      key.place = op.getFile().str() + ":" + std::to_string(op.getOffset());
      return std::optional<TieKey>(std::move(key));
    }
    if (size == 0)
      return std::optional<TieKey>();
    Expected<const std::byte *> data = bytes.of(op);
    if (!data.ok())
      return data.status();
    if (isFilled(*data, size, width))
      return std::optional<TieKey>();
    if (key.extents.size() == 2)
      llvm::sort(key.extents);
    key.corners.assign(reinterpret_cast<const char *>(*data), size_t(width));
    key.corners.append(reinterpret_cast<const char *>(*data + size - width), size_t(width));
    return std::optional<TieKey>(std::move(key));
  }

  /// Whether the file says that the two come from different parameters.
  static bool saysApart(nn::ParameterOp a, nn::ParameterOp b) {
    return a.getApartAsAttr() && b.getApartAsAttr() && a.getApartAsAttr() != b.getApartAsAttr();
  }

  /// Two weights of one key.
  Expected<std::optional<Tie>> compare(nn::ParameterOp weight, nn::ParameterOp duplicate) {
    if (duplicate.isAbsent()) // the key names the place, and stored shapes are equal
      return std::optional<Tie>(Tie{weight, duplicate, false});
    if (saysApart(weight, duplicate))
      return std::optional<Tie>();
    auto type = nn::tensorType(weight.getResult()), otherType = nn::tensorType(duplicate.getResult());
    int64_t width = byteSize(dtypeOf(type));
    Expected<const std::byte *> a = bytes.of(weight), b = bytes.of(duplicate);
    if (!a.ok())
      return a.status();
    if (!b.ok())
      return b.status();
    if (type == otherType && mayBeEqual(weight, duplicate) && sameContent(*a, *b, type.getNumElements() * width))
      return std::optional<Tie>(Tie{weight, duplicate, false});
    ArrayRef<int64_t> shape = type.getShape(), other = otherType.getShape();
    bool isMirrored = shape.size() == 2 && shape[0] == other[1] && shape[1] == other[0];
    if (isMirrored && isTransposed(*a, *b, shape[0], shape[1], width))
      return std::optional<Tie>(Tie{weight, duplicate, true});
    return std::optional<Tie>();
  }

  Bytes bytes;
  llvm::StringSet<> defaults;
  std::map<TieKey, std::vector<nn::ParameterOp>> distinct;
};
} // namespace

Expected<std::vector<Tie>> findTies(func::FuncOp function, const std::string &folder) {
  // Tables first: an embedding needs its rows as they are stored, a matmul can read either form.
  auto isTable = [](nn::ParameterOp op) {
    return llvm::any_of(op->getUses(), [](OpOperand &use) {
      return isa<nn::EmbeddingOp>(use.getOwner()) && use.getOperandNumber() == 0;
    });
  };
  TieFinder finder(function->getParentOfType<ModuleOp>(), folder);
  std::vector<Tie> ties;
  for (bool tables : {true, false})
    for (nn::ParameterOp op : function.getOps<nn::ParameterOp>()) {
      if (isTable(op) != tables)
        continue;
      Expected<std::optional<Tie>> tie = finder.find(op);
      if (!tie.ok())
        return tie.status();
      if (*tie)
        ties.push_back(**tie);
    }
  return ties;
}

} // namespace hpc
