// The view under convolutions and pools: every position of a sliding window, without a copy.
#ifndef HPC_NN_WINDOW
#define HPC_NN_WINDOW
include "compiler/Dialect/NN/Base.td"

def NN_WindowOp : NN_ComputeOp<"window", "Repeat", "None", [LeadingDimsOpInterface, NN_Differentiable]> {
  let summary = "the elements under a window at each of its positions: result[.., k, .., o, ..] = operand[.., o * stride + k * dilation, ..]";
  let description = [{
    The last `n = strides.size()` dims of the operand become 2n: first the n offsets within a window, then its n positions. So a pool is a reduction
    over the offsets, and a convolution a product of the weight [m, c * k] with the windows as [c * k, o]: the positions stay last, where rows
    are long. Nothing is padded here (`nn.pad` before it), and a step may leave elements at the end unread.

        %w = nn.window %x {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>} : tensor<4x8x9x9xf32> -> tensor<4x8x3x3x4x4xf32>

    Rule: leading dims are factors; windowed dims, offsets and positions are never cut; linear. Its adjoint sums what windows share: row k of [.., k, o]
    laid out from k * dilation in steps of `stride`, then the sum of the rows, which is how ConvTranspose is imported (Import/OnnxOps/Window.h, overlapAdd).
    Constraints: (C1) one stride and one dilation, 1 or more, for each of the last n >= 1 dims. (C2) the result has the leading dims, n sizes and n counts, and no
    window reaches behind the end: (count - 1) * stride + (size - 1) * dilation < dim.
  }];
  let arguments = (ins AnyRankedTensor:$operand, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}
#endif
