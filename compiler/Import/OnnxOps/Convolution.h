// A convolution's channels and windows, and its form in the program; shared by the ops that convolve.
#pragma once

#include "compiler/Import/OnnxOps/Window.h"

namespace hpc::onnx {

/// Channels and groups of a node; checked.
struct Channels {
  int64_t groups = 1, in = 0, out = 0; ///< `in`, `out`: of all groups
};
struct Convolution {
  Channels channels;
  SlidingWindow window;
};

/// `weight`: [out, in / groups, sizes..], or with out and in swapped where the convolution is transposed.
std::optional<Channels> readChannels(NodeImport &n, Value x, Value weight, bool isTransposed);
/// The attributes of a convolution of x [n, c, dims..]; nothing and an error where they do not fit.
std::optional<Convolution> readConvolution(NodeImport &n, Value x, Value weight);

/// x times the weight, plus `bias` [out] unless that is null: [n, out, counts..].
Value convolve(NodeImport &n, Value x, Value weight, Value bias, const SlidingWindow &window, const Channels &channels);

} // namespace hpc::onnx
