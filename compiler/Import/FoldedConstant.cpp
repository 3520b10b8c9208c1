// Recognition of masks and index tensors among folded constants, so that nothing of size query x key stays in the
// program.
#include "compiler/Import/Folding.h"

#include "compiler/Dialect/NN/NN.h"
#include "compiler/ElementType.h"
#include "compiler/Import/KnownTensor.h"

#include <cstring>

namespace hpc::onnx {
namespace {

/// j <= i + upper and j >= i + lower, where given; i and j are coordinates along `row` and `column`.
/// With row -1 i is 0: a prefix or a suffix of j.
struct Band {
  int row = -1, column = -1;
  std::optional<int64_t> lower, upper;
};

/// The first and last true element of a row whose true elements are contiguous; nullopt for other rows.
struct Run {
  int64_t first, last; ///< last < first: none
};
std::optional<Run> findRun(const int64_t *row, int64_t size) {
  int64_t first = 0, last = size - 1;
  while (first < size && !row[first])
    ++first;
  while (last > first && !row[last])
    --last;
  if (first == size)
    return Run{0, -1};
  for (int64_t j = first; j <= last; ++j)
    if (!row[j])
      return std::nullopt;
  return Run{first, last};
}

/// `mask` has one element per element of the compact shape.
std::optional<Band> findBand(ArrayRef<int64_t> mask, ArrayRef<int64_t> shape, ArrayRef<int> varied) {
  if (varied.empty() || varied.size() > 2)
    return std::nullopt;
  Band band;
  band.column = varied.back();
  band.row = varied.size() == 2 ? varied[0] : -1;
  int64_t rows = band.row < 0 ? 1 : shape[band.row], columns = shape[band.column];
  std::vector<Run> runs;
  for (int64_t i = 0; i < rows; ++i) {
    std::optional<Run> run = findRun(mask.data() + i * columns, columns);
    if (!run)
      return std::nullopt;
    runs.push_back(*run);
    // If a run ends inside the row, its end gives the bound.
    if (run->last >= run->first && run->last < columns - 1 && !band.upper)
      band.upper = run->last - i;
    if (run->last >= run->first && run->first > 0 && !band.lower)
      band.lower = run->first - i;
  }
  for (int64_t i = 0; i < rows; ++i) {
    int64_t first = band.lower ? std::max<int64_t>(0, i + *band.lower) : 0;
    int64_t last = band.upper ? std::min<int64_t>(columns - 1, i + *band.upper) : columns - 1;
    bool none = runs[size_t(i)].last < runs[size_t(i)].first;
    if (none ? first <= last : first != runs[size_t(i)].first || last != runs[size_t(i)].last)
      return std::nullopt;
  }
  return band;
}

class ConstantBuilder {
public:
  ConstantBuilder(OpBuilder &builder, Location loc, const KnownTensor &known)
      : builder(builder), loc(loc), compact(known.compact), varied(known.variedDims()) {}

  Value build(StringRef name) {
    if (compact.size() == 1)
      return scalar(compact, 0);
    if (Value value = affine())
      return value;
    if (Value value = compact.dtype == DType::Bool ? mask(compact.ints) : twoValued())
      return value;
    DenseElementsAttr value = tensorToAttr(compact, builder.getContext());
    if (compact.size() <= maxConstantElements)
      return nn::ConstantOp::create(builder, loc, value);
    return nn::ParameterOp::create(builder, loc, name, value);
  }

private:
  Value scalar(const Tensor &tensor, int64_t index) {
    Tensor element(tensor.dtype, {});
    if (element.isFloat())
      element.floats[0] = tensor.floats[size_t(index)];
    else
      element.ints[0] = tensor.ints[size_t(index)];
    return nn::ConstantOp::create(builder, loc, tensorToAttr(element, builder.getContext()));
  }
  Value wholeNumber(int64_t value) {
    Tensor element(DType::I64, {});
    element.ints[0] = value;
    return scalar(element, 0);
  }

  /// Of the compact rank, with size 1 along all dims but one.
  Value iota(int dim, int64_t start, int64_t step, Type elementType) {
    SmallVector<int64_t> shape(compact.shape.size(), 1);
    shape[size_t(dim)] = compact.shape[size_t(dim)];
    return nn::IotaOp::create(builder, loc, RankedTensorType::get(shape, elementType), Value(), dim, start, step);
  }

  Value affine() {
    std::optional<AffineForm> form = findAffineForm(compact);
    if (!form)
      return {};
    DType indexType = compact.isFloat() ? DType::I64 : compact.dtype;
    Value sum;
    for (int dim : varied) {
      Value part = iota(dim, sum ? 0 : form->start, form->steps[size_t(dim)], typeOf(indexType, builder.getContext()));
      sum = sum ? Value(nn::AddOp::create(builder, loc, sum, part)) : part;
    }
    if (!compact.isFloat())
      return sum;
    auto type = RankedTensorType::get(nn::shapeOf(sum), typeOf(compact.dtype, builder.getContext()));
    return nn::CastOp::create(builder, loc, type, sum);
  }

  Value mask(ArrayRef<int64_t> elements) {
    std::optional<Band> band = findBand(elements, compact.shape, varied);
    if (!band)
      return {};
    Type i64 = builder.getI64Type();
    auto row = [&](int64_t offset) { return band->row < 0 ? wholeNumber(offset) : iota(band->row, offset, 1, i64); };
    Value column = iota(band->column, 0, 1, i64), result;
    if (band->upper)
      result = nn::CompareOp::create(builder, loc, nn::ComparePredicate::ge, row(*band->upper), column);
    if (band->lower) {
      Value above = nn::CompareOp::create(builder, loc, nn::ComparePredicate::le, row(*band->lower), column);
      result = result ? Value(nn::AndOp::create(builder, loc, result, above)) : above;
    }
    return result;
  }

  /// The mask is true at elements with the first value: for a causal bias, those that are not masked.
  Value twoValued() {
    auto bits = [&](int64_t index) {
      uint64_t value;
      if (compact.isFloat())
        std::memcpy(&value, &compact.floats[size_t(index)], sizeof value);
      else
        value = uint64_t(compact.ints[size_t(index)]);
      return value;
    };
    std::vector<int64_t> first(size_t(compact.size()));
    int64_t other = -1;
    for (int64_t index = 0; index < compact.size(); ++index) {
      first[size_t(index)] = bits(index) == bits(0);
      if (first[size_t(index)])
        continue;
      if (other >= 0 && bits(index) != bits(other))
        return {};
      other = index;
    }
    Value condition = mask(first);
    return condition ? Value(nn::SelectOp::create(builder, loc, condition, scalar(compact, 0), scalar(compact, other)))
                     : Value();
  }

  OpBuilder &builder;
  Location loc;
  const Tensor &compact;
  SmallVector<int> varied;
};

} // namespace

Value buildConstant(OpBuilder &builder, Location loc, const KnownTensor &known, StringRef name) {
  return ConstantBuilder(builder, loc, known).build(name);
}

} // namespace hpc::onnx
