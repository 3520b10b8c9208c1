// Ops on images that only move elements: channels to and from space, crops to a size.
#include "compiler/Import/OnnxOps/Window.h"
#include "runtime/base/CountText.h"
#include "runtime/plan/CheckedMath.h"

namespace hpc::onnx {
namespace {

/// [batch, channel, height, width] and a block size; checked.
struct Blocks {
  int64_t batch, channels, height, width, size;
  bool isColumnFirst; ///< the channel is major to its block (CRD)
};
std::optional<Blocks> readBlocks(NodeImport &n) {
  SmallVector<int64_t> shape = n.b.shape(n.in(0));
  int64_t size = n.integer("blocksize", 0);
  std::string mode = n.text("mode", "DCR");
  if (shape.size() != 4 || size < 1 || (mode != "DCR" && mode != "CRD")) {
    n.b.fail("it needs an input of 4 dims, a blocksize of 1 or more and mode DCR or CRD; here are " +
             countText(shape.size(), "dim") + ", " + std::to_string(size) + " and '" + mode + "'");
    return std::nullopt;
  }
  return Blocks{shape[0], shape[1], shape[2], shape[3], size, mode == "CRD"};
}

Value indivisible(NodeImport &n, const Blocks &blocks, const std::string &what) {
  return n.b.fail("its blocksize " + std::to_string(blocks.size) + " does not divide its " + what);
}

Results depthToSpace(NodeImport &n) {
  std::optional<Blocks> b = readBlocks(n);
  if (!b)
    return {n.in(0)};
  int64_t square = plan::multiplySizes(b->size, b->size);
  if (b->channels % square)
    return {indivisible(n, *b, "channels (" + std::to_string(b->channels) + ") twice")};
  int64_t depth = b->channels / square;
  SmallVector<int64_t> split = b->isColumnFirst
                                   ? SmallVector<int64_t>{b->batch, depth, b->size, b->size, b->height, b->width}
                                   : SmallVector<int64_t>{b->batch, b->size, b->size, depth, b->height, b->width};
  Value x = n.b.reshape(n.in(0), split);
  x = n.b.transpose(x, b->isColumnFirst ? ArrayRef<int64_t>{0, 1, 4, 2, 5, 3} : ArrayRef<int64_t>{0, 3, 4, 1, 5, 2});
  return {n.b.reshape(
      x, {b->batch, depth, plan::multiplySizes(b->height, b->size), plan::multiplySizes(b->width, b->size)})};
}

Results spaceToDepth(NodeImport &n) {
  std::optional<Blocks> b = readBlocks(n);
  if (!b)
    return {n.in(0)};
  if (b->height % b->size || b->width % b->size)
    return {
        indivisible(n, *b, "height and width (" + std::to_string(b->height) + ", " + std::to_string(b->width) + ")")};
  int64_t height = b->height / b->size, width = b->width / b->size;
  Value x = n.b.reshape(n.in(0), {b->batch, b->channels, height, b->size, width, b->size});
  x = n.b.transpose(x, b->isColumnFirst ? ArrayRef<int64_t>{0, 1, 3, 5, 2, 4} : ArrayRef<int64_t>{0, 3, 5, 1, 2, 4});
  int64_t square = plan::multiplySizes(b->size, b->size);
  return {n.b.reshape(x, {b->batch, plan::multiplySizes(b->channels, square), height, width})};
}

/// The middle of dims that are too long, zeros around dims that are too short; an odd element is at the end.
Results centerCropPad(NodeImport &n) {
  Value x = n.in(0);
  SmallVector<int64_t> shape = n.b.shape(x), wanted = n.b.integers(n.in(1), "shape"), starts(shape.size(), 0);
  int64_t rank = int64_t(shape.size());
  SmallVector<int64_t> axes = n.integers("axes").value_or(llvm::to_vector(llvm::seq<int64_t>(0, rank)));
  n.axes(axes, rank); // none twice
  if (!n.b.status().ok())
    return {x};
  if (axes.size() != wanted.size())
    return {n.b.fail("its shape has " + countText(wanted.size(), "size") + " for " + std::to_string(axes.size()) +
                     " axes")};
  SmallVector<int64_t> sizes = shape;
  for (auto [axis, size] : llvm::zip_equal(axes, wanted)) {
    size_t dim = size_t(n.axis(axis, rank));
    if (size < 0)
      return {n.b.fail("its shape has a negative size")};
    int64_t cut = shape[dim] - size;
    starts[dim] = cut >= 0 ? cut / 2 : -((size - shape[dim]) / 2);
    sizes[dim] = size;
  }
  return {takeRange(n, x, starts, sizes)};
}

const OnnxOp spatialTable[] = {
    {"DepthToSpace", 1, depthToSpace},
    {"SpaceToDepth", 1, spaceToDepth},
    {"CenterCropPad", 18, centerCropPad},
};

} // namespace

ArrayRef<OnnxOp> spatialOps() { return spatialTable; }

} // namespace hpc::onnx
