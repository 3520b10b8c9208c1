// Windows of signal processing and the mel matrix: numbers that follow from attributes and sizes alone.
#include "compiler/Import/OnnxOps/OnnxOp.h"

#include <cmath>

namespace hpc::onnx {
namespace {

/// a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n) for i of size; n is the size, or one less where the window is symmetric.
Results cosineWindow(NodeImport &n, double a0, double a1, double a2) {
  SmallVector<int64_t> size = n.b.integers(n.in(0), "size");
  int64_t code = n.integer("output_datatype", 1);
  std::optional<DType> type = dtypeOfCode(code);
  if (!n.b.status().ok())
    return {n.in(0)};
  if (size.size() != 1 || size[0] < 0)
    return {n.b.fail("its size must be one number, 0 or more")};
  if (!type)
    return {n.unsupported("a window of type " + typeNameOfCode(code))};
  if (Status status = checkFolded(size[0]); !status.ok())
    return {n.unsupported(status.message())};
  Tensor window(*type, {size[0]});
  double period = double(n.integer("periodic", 1) ? size[0] : size[0] - 1);
  for (int64_t i = 0; i < size[0]; ++i) {
    double angle = period == 0 ? 0 : 2 * M_PI * double(i) / period;
    window.setNumber(i, a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
  }
  round(window);
  return {n.b.known(std::move(window))};
}

Results hann(NodeImport &n) { return cosineWindow(n, 0.5, 0.5, 0); }
Results hamming(NodeImport &n) { return cosineWindow(n, 25.0 / 46, 1 - 25.0 / 46, 0); }
Results blackman(NodeImport &n) { return cosineWindow(n, 0.42, 0.5, 0.08); }

const OnnxOp table[] = {{"HannWindow", 17, hann}, {"HammingWindow", 17, hamming}, {"BlackmanWindow", 17, blackman}};

} // namespace

ArrayRef<OnnxOp> signalOps() { return table; }

} // namespace hpc::onnx
