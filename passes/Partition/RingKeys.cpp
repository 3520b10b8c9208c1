// Rows in another order are gathered by constant indices (hpc-annotate-sequence in zigzag): these alone say who has which positions.
#include "passes/Partition/RingKeys.h"

namespace hpc {

/// The numbers by which a gather permutes rows; none where they are no constant.
static SmallVector<int64_t> numbersOf(nn::GatherOp gather) {
  auto constant = gather.getIndices().getDefiningOp<nn::ConstantOp>();
  auto numbers = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  if (!numbers || !numbers.getElementType().isInteger(64))
    return {};
  return SmallVector<int64_t>(numbers.getValues<int64_t>());
}

SharedKeys SharedKeys::of(Value operand, const dist::Mesh &mesh) {
  SharedKeys keys;
  if (auto order = operand.getDefiningOp<nn::GatherOp>(); order && order.getAxis() == positionsDim && !numbersOf(order).empty()) {
    keys.order = order;
    operand = order.getData();
  }
  auto gather = operand.getDefiningOp<dist::AllGatherOp>();
  if (!gather || gather.getFromDim() != positionsDim || !mesh.hasRole(gather.getAxis().str(), dist::AxisRole::Sequence) ||
      gather.getBefore().getValue().dims[positionsDim].size() != 1)
    return {};
  keys.gather = gather;
  return keys;
}

bool SharedKeys::isLike(const SharedKeys &other) const {
  dist::AllGatherOp mine = gather, its = other.gather;
  return mine && its && mine.getAxis() == its.getAxis() &&
         mine.getBefore().getValue().dims[positionsDim] == its.getBefore().getValue().dims[positionsDim] && positions() == other.positions();
}

std::vector<int64_t> SharedKeys::positions() const {
  dist::AllGatherOp mine = gather;
  std::vector<int64_t> positions(size_t(nn::shapeOf(mine.getResult())[positionsDim]));
  std::iota(positions.begin(), positions.end(), 0);
  if (order)
    for (auto [position, row] : llvm::enumerate(numbersOf(order)))
      positions[size_t(row)] = int64_t(position);
  return positions;
}

SmallVector<KeyPiece> keyPieces(ArrayRef<int64_t> positions, int64_t rows, int64_t ranks) {
  std::set<int64_t> cuts = {0};
  const int64_t all = int64_t(positions.size());
  for (int64_t row = 1; row < all; ++row)
    if (row % rows != 0 && positions[size_t(row)] != positions[size_t(row - 1)] + 1)
      cuts.insert(row % rows);
  SmallVector<KeyPiece> pieces;
  for (auto cut = cuts.begin(); cut != cuts.end(); ++cut) {
    KeyPiece piece{*cut, std::next(cut) == cuts.end() ? rows : *std::next(cut), {}};
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const int64_t first = rank * rows + piece.begin, last = rank * rows + piece.end;
      piece.starts.push_back(first < all ? positions[size_t(first)] : all);
      piece.isBroken |= first < all && last > all;
    }
    pieces.push_back(piece);
  }
  return pieces;
}

} // namespace hpc
