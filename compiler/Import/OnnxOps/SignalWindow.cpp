// Windows of signal processing and the mel matrix: numbers that follow from attributes and sizes alone.
#include "compiler/Import/OnnxOps/OnnxOp.h"
#include "runtime/base/CountText.h"

#include <cmath>

namespace hpc::onnx {
namespace {

/// a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n) for i of size; n is the size, or one less where the window is
/// symmetric.
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

/// One triangle over the frequencies of a one-sided spectrum for each band; bands are equally wide on the mel scale.
Results melWeightMatrix(NodeImport &n) {
  double numbers[5];
  static const char *const names[] = {"num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz",
                                      "upper_edge_hertz"};
  for (size_t i = 0; i < 5; ++i)
    numbers[i] = n.b.number(n.in(i), names[i]);
  int64_t code = n.integer("output_datatype", 1);
  std::optional<DType> type = dtypeOfCode(code);
  if (!n.b.status().ok())
    return {n.in(0)};
  if (!type)
    return {n.unsupported("a matrix of type " + typeNameOfCode(code))};
  double bands = numbers[0], length = numbers[1], rate = numbers[2], lowest = numbers[3], highest = numbers[4];
  bool isPossible = bands >= 1 && length >= 1 && rate > 0 && lowest >= 0 && highest >= lowest && 2 * highest <= rate;
  if (!isPossible)
    return {n.b.fail("it needs bands, a length, and edges from 0 to half the sample rate")};
  if (bands > 1e6 || length > 1e9 || !checkFolded(int64_t(bands) * (int64_t(length) / 2 + 1)).ok())
    return {n.unsupported("a matrix of more than " + countText(maxFoldedElements, "element"))};
  int64_t rows = int64_t(length) / 2 + 1, columns = int64_t(bands);
  auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  double low = mel(lowest), step = (mel(highest) - low) / double(columns + 2);
  auto place = [&](int64_t edge) {
    double hertz = 700 * (std::pow(10.0, (double(edge) * step + low) / 2595) - 1);
    return std::clamp<int64_t>(int64_t(std::floor((length + 1) * hertz / rate)), 0, rows - 1);
  };
  Tensor matrix(*type, {rows, columns});
  for (int64_t band = 0; band < columns; ++band) {
    int64_t left = place(band), middle = place(band + 1), right = place(band + 2);
    for (int64_t i = left; i < middle; ++i)
      matrix.setNumber(i * columns + band, double(i - left) / double(middle - left));
    matrix.setNumber(middle * columns + band, 1);
    for (int64_t i = middle + 1; i < right; ++i)
      matrix.setNumber(i * columns + band, double(right - i) / double(right - middle));
  }
  round(matrix);
  return {n.b.known(std::move(matrix))};
}

const OnnxOp signalTable[] = {{"MelWeightMatrix", 17, melWeightMatrix},
                        {"HannWindow", 17, hann},
                        {"HammingWindow", 17, hamming},
                        {"BlackmanWindow", 17, blackman}};

} // namespace

ArrayRef<OnnxOp> signalOps() { return signalTable; }

} // namespace hpc::onnx
