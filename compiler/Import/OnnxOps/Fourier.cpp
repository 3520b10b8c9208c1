// Fourier transforms, as one product with a known matrix: real and imaginary parts are rows and columns of it, so that
// padding, one-sided spectra and inverses are other matrices and no other code.
#include "compiler/Import/OnnxOps/Dims.h"
#include "runtime/base/CountText.h"

#include <cmath>

namespace hpc::onnx {
namespace {

constexpr int64_t maxMatrix = int64_t(1) << 24; // elements: a length of 2,048 for complex numbers

struct Transform {
  int64_t rows = 0;   ///< elements of the axis that are read
  int64_t parts = 1;  ///< of each: 1 real, 2 complex
  int64_t length = 0; ///< of the transform
  bool inverse = false, onesided = false;

  bool isReal() const { return inverse && onesided; } ///< the result
  int64_t columns() const { return onesided && !inverse ? length / 2 + 1 : length; }
  int64_t resultParts() const { return isReal() ? 1 : 2; }
};

/// [rows * parts, columns * resultParts]
Tensor matrixOf(const Transform &transform, DType dtype) {
  int64_t parts = transform.parts, resultParts = transform.resultParts(), width = transform.columns() * resultParts;
  Tensor matrix(dtype, {transform.rows * parts, width});
  double scale = transform.inverse ? 1.0 / double(transform.length) : 1, sign = transform.inverse ? 1 : -1;
  for (int64_t n = 0; n < transform.rows; ++n)
    for (int64_t k = 0; k < transform.columns(); ++k) {
      double angle = sign * 2 * M_PI * double(n * k % transform.length) / double(transform.length);
      // In a one-sided spectrum all elements but the ends represent their conjugates as well.
      bool isEnd = n == 0 || 2 * n == transform.length;
      double weight = scale * (transform.isReal() && !isEnd ? 2 : 1);
      auto set = [&](int64_t part, int64_t resultPart, double value) {
        matrix.floats[size_t((n * parts + part) * width + k * resultParts + resultPart)] = weight * value;
      };
      set(0, 0, std::cos(angle));
      if (resultParts == 2)
        set(0, 1, std::sin(angle));
      if (parts == 2)
        set(1, 0, -std::sin(angle));
      if (parts == 2 && resultParts == 2)
        set(1, 1, std::cos(angle));
    }
  round(matrix);
  return matrix;
}

/// Transforms the dim before the last of x, which holds the parts.
Value transformed(NodeImport &n, Value x, int64_t length, bool inverse, bool onesided) {
  SmallVector<int64_t> shape = n.b.shape(x);
  size_t rank = shape.size();
  if (!isFloat(n.b.dtype(x)))
    return n.b.fail(std::string("its signal is ") + name(n.b.dtype(x)) + "; a transform needs floats");
  Transform transform{0, shape[rank - 1], length, inverse, onesided};
  if (length < 1)
    return n.b.fail("a transform of length " + std::to_string(length) + "; it must be 1 or more");
  transform.rows = std::min(shape[rank - 2], transform.isReal() ? length / 2 + 1 : length);
  if (transform.parts < 1 || transform.parts > 2 || (transform.isReal() && transform.parts != 2) ||
      (onesided && !inverse && transform.parts != 1))
    return n.b.fail("its last dim of " + std::to_string(transform.parts) +
                    " must be 1 for real numbers and 2 for complex "
                    "ones; a one-sided spectrum is of real numbers");
  int64_t elements = elementCount({transform.rows, transform.parts, transform.columns(), transform.resultParts()});
  if (length > maxMatrix || elements > maxMatrix)
    return n.unsupported("a transform of length " + std::to_string(length) +
                         "; it is a product with a matrix, which may have " + countText(maxMatrix, "element"));
  SmallVector<int64_t> read = shape, flat(shape.begin(), shape.end() - 2), result = flat;
  read[rank - 2] = transform.rows;
  Value part = n.b.slice(x, SmallVector<int64_t>(rank, 0), SmallVector<int64_t>(rank, 1), read);
  flat.push_back(transform.rows * transform.parts);
  if (flat.size() < 2)
    flat.insert(flat.begin(), 1);
  Value product = n.b.matmul(n.b.reshape(part, flat), n.b.known(matrixOf(transform, n.b.dtype(x))));
  result.append({transform.columns(), transform.resultParts()});
  return n.b.reshape(product, result);
}

Results dft(NodeImport &n) {
  Value x = n.in(0);
  int64_t rank = n.b.rank(x);
  SmallVector<int64_t> axisGiven = {n.version < 20 ? n.integer("axis", 1) : -2};
  if (n.version >= 20 && n.has(2))
    axisGiven = n.b.integers(n.in(2), "axis");
  bool inverse = n.integer("inverse", 0), onesided = n.integer("onesided", 0);
  SmallVector<int64_t> lengthGiven = n.has(1) ? n.b.integers(n.in(1), "length") : SmallVector<int64_t>{0};
  if (!n.b.status().ok())
    return {x};
  if (axisGiven.size() != 1 || lengthGiven.size() != 1 || rank < 2)
    return {n.b.fail("it needs an axis, a length and a last dim of real and imaginary parts")};
  int64_t axis = n.axis(axisGiven[0], rank);
  if (!n.b.status().ok())
    return {x};
  if (axis == rank - 1)
    return {n.b.fail("its axis is that of the real and imaginary parts")};
  int64_t size = n.b.shape(x)[size_t(axis)];
  int64_t length = n.has(1) ? lengthGiven[0] : inverse && onesided ? 2 * (size - 1) : size;
  // The axis next to the parts.
  SmallVector<int64_t> order, back(size_t(rank), 0);
  for (int64_t dim = 0; dim < rank - 1; ++dim)
    if (dim != axis)
      order.push_back(dim);
  order.append({axis, rank - 1});
  for (auto [to, from] : llvm::enumerate(order))
    back[size_t(from)] = int64_t(to);
  Value result = transformed(n, n.b.transpose(x, order), length, inverse, onesided);
  return {n.b.status().ok() ? n.b.transpose(result, back) : x};
}

/// signal [batch, length, parts] -> [batch, frames, frequencies, 2]
Results stft(NodeImport &n) {
  Value signal = n.in(0);
  SmallVector<int64_t> shape = n.b.shape(signal), step = n.b.integers(n.in(1), "frame step");
  if (shape.size() != 3)
    return {n.b.fail("its signal must be [batch, length, parts]")};
  SmallVector<int64_t> length = {n.has(2) ? elementCount(n.b.shape(n.in(2))) : shape[1]};
  if (n.has(3))
    length = n.b.integers(n.in(3), "frame length");
  if (!n.b.status().ok())
    return {signal};
  if (step.size() != 1 || length.size() != 1 || step[0] < 1 || length[0] < 1 || length[0] > shape[1] ||
      (n.has(2) && n.b.shape(n.in(2)) != SmallVector<int64_t>{length[0]}))
    return {n.b.fail("its step and frame length must be numbers from 1 to the signal's length, its window as long as a "
                     "frame")};
  int64_t frames = (shape[1] - length[0]) / step[0] + 1;
  if (Status status = checkFolded(elementCount({frames, length[0]})); !status.ok())
    return {n.unsupported(status.message())};
  Tensor places(DType::I64, {frames, length[0]});
  for (int64_t i = 0; i < places.size(); ++i)
    places.ints[size_t(i)] = i / length[0] * step[0] + i % length[0];
  Value framed = n.b.gather(signal, n.b.known(std::move(places)), 1);
  if (n.has(2))
    framed = n.b.mul(framed, n.b.reshape(n.in(2), {length[0], 1}));
  return {n.b.status().ok() ? transformed(n, framed, length[0], false, n.integer("onesided", 1)) : signal};
}

const OnnxOp fourierTable[] = {{"DFT", 17, dft}, {"STFT", 17, stft}};

} // namespace

ArrayRef<OnnxOp> fourierOps() { return fourierTable; }

} // namespace hpc::onnx
