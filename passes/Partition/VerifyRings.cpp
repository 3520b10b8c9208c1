// Pass hpc-verify-rings: the attentions of a ring read the keys of each rank once, at their positions, and the gradients of
// these keys come back to that rank. It counts the hops of every block from the values alone, as hpc-ring-attention did not.
#include "compiler/Diagnostics.h"
#include "compiler/Dialect/NN/DropoutDraw.h"
#include "compiler/Location.h"
#include "passes/Partition/Passes.h"

#include "llvm/ADT/MapVector.h"

namespace hpc {
#define GEN_PASS_DEF_VERIFYRINGS
#include "passes/Partition/Passes.h.inc"

using namespace dist;

namespace {
/// A block of keys: those of the rank `hops` further.
struct Block {
  Value home; ///< on its own rank
  int64_t hops = 0, piece = 0; ///< piece: the first key of the part that is read
  std::string axis;            ///< empty without hops
};

struct Part {
  Operation *op;
  std::array<Value, 2> read; ///< keys and values
  Block key, value;
  SmallVector<Value, 2> starts; ///< that say which keys these are: for the mask, for dropout
};

class RingChecker {
public:
  explicit RingChecker(func::FuncOp function) : function(function), mesh(meshOf(function)) {}

  LogicalResult run() {
    // 1. Parts of one attention have one chain of results; parts of its gradient read one log_sum.
    llvm::MapVector<Operation *, SmallVector<Part>> rings;
    llvm::DenseMap<Operation *, Operation *> firstOf;
    for (Operation &op : function.front()) {
      Operation *first = nullptr;
      if (auto forward = dyn_cast<nn::AttentionOp>(op); forward && (forward.getLogSum() || !forward.getCarried().empty())) {
        Operation *before = forward.getCarried().empty() ? nullptr : forward.getCarried()[1].getDefiningOp();
        first = firstOf[&op] = firstOf.lookup(before) ? firstOf.lookup(before) : &op;
        add(forward, rings[first]);
      } else if (auto gradient = dyn_cast<nn::AttentionGradOp>(op); gradient && !gradient.getWhole().empty()) {
        first = gradients.try_emplace({gradient.getWhole()[0], gradient.getQuery()}, &op).first->second;
        add(gradient, rings[first]);
      }
    }
    // 2. Each ring whole.
    for (auto &[first, parts] : rings)
      if (failed(check(parts)))
        return failure();
    return success();
  }

private:
  InFlightDiagnostic fail(Operation *op) { return userError(op, ErrorKind::Internal) << describeOp(op) << ": "; }

  FailureOr<Block> blockOf(Operation *op, Value value, bool inPieces) {
    Block block;
    if (inPieces) {
      auto slice = value.getDefiningOp<nn::SliceOp>();
      block.piece = slice.getStarts()[2];
      value = slice.getOperand();
    }
    while (auto move = value.getDefiningOp<RawPermuteOp>()) {
      if (int64_t(move.getShift()) != 1 || move.getSkew() || (!block.axis.empty() && block.axis != move.getAxis()))
        return fail(op) << "reads keys that move " << move.getShift() << " along '" << move.getAxis()
                        << "'; a block of a ring goes from neighbour to neighbour, 1 along one axis";
      block.axis = move.getAxis().str();
      ++block.hops;
      value = move.getOperand();
    }
    block.home = value;
    return block;
  }

  template <typename Op> static void add(Op op, SmallVectorImpl<Part> &parts) {
    Part part{op, {op.getKey(), op.getValue()}, {}, {}, {}};
    if (op.getCausalOffset() && !op.getKeyStart().empty())
      part.starts.push_back(op.getKeyStart().back());
    if (std::optional<nn::DropoutDraw> draw = nn::dropoutOf(op))
      for (auto [offset, dim] : llvm::zip(draw->offsets, draw->offsetDims))
        if (dim == 4)
          part.starts.push_back(offset);
    parts.push_back(part);
  }

  LogicalResult check(MutableArrayRef<Part> parts) {
    // A whole block that has moved is no slice.
    const bool inPieces = llvm::all_of(parts, [](const Part &part) { return part.read[0].getDefiningOp<nn::SliceOp>() && part.read[1].getDefiningOp<nn::SliceOp>(); });
    for (Part &part : parts) {
      FailureOr<Block> key = blockOf(part.op, part.read[0], inPieces), value = blockOf(part.op, part.read[1], inPieces);
      if (failed(key) || failed(value))
        return failure();
      part.key = *key;
      part.value = *value;
    }
    const Part &first = parts.front();
    std::string axis;
    std::set<std::pair<int64_t, int64_t>> read;
    std::set<int64_t> pieces;
    for (const Part &part : parts) {
      if (part.key.home != first.key.home || part.value.home != first.value.home)
        return fail(part.op) << "reads keys or values that are not those of the ring's first step";
      if (part.key.hops != part.value.hops || part.key.piece != part.value.piece)
        return fail(part.op) << "reads keys of the rank " << part.key.hops << " further with values of the rank " << part.value.hops << " further";
      if (!read.insert({part.key.hops, part.key.piece}).second)
        return fail(part.op) << "reads the keys of the rank " << part.key.hops << " further a second time";
      pieces.insert(part.key.piece);
      if (!part.key.axis.empty())
        axis = part.key.axis;
    }
    const int64_t ranks = axis.empty() ? 1 : mesh.size(axis);
    for (int64_t hops = 0; hops < ranks; ++hops)
      for (int64_t piece : pieces)
        if (!read.count({hops, piece}))
          return fail(parts.back().op) << "ends a ring of " << ranks << " ranks along '" << axis << "' that has not read the keys of the rank " << hops
                                       << " further; a step is left out";
    for (const Part &part : parts)
      if (failed(checkPlaces(part)) || failed(checkWayHome(part, ranks)))
        return failure();
    return success();
  }

  /// The rank whose first key a number tells: how much further it is. Nothing where it tells none.
  static std::optional<int64_t> rankOf(Value start) {
    for (Operation *op = start.getDefiningOp(); op; op = op->getNumOperands() ? op->getOperand(op->getNumOperands() - 1).getDefiningOp() : nullptr)
      if (auto offset = dyn_cast<OffsetOp>(op))
        return int64_t(offset.getShift());
    return std::nullopt;
  }
  LogicalResult checkPlaces(const Part &part) {
    for (Value start : part.starts)
      if (std::optional<int64_t> rank = rankOf(start); rank != part.key.hops)
        return fail(part.op) << "reads the keys of the rank " << part.key.hops << " further at the positions of "
                             << (rank ? "the rank " + std::to_string(*rank) + " further" : "no rank");
    return success();
  }

  LogicalResult checkWayHome(const Part &part, int64_t ranks) {
    auto gradient = dyn_cast<nn::AttentionGradOp>(part.op);
    if (!gradient)
      return success();
    for (Value value : {gradient.getKeyGradient(), gradient.getValueGradient()}) {
      if (value.use_empty())
        continue;
      int64_t hops = 0;
      while (value.hasOneUse() && isa<RawPermuteOp, nn::AddOp, nn::ConcatOp>(*value.user_begin())) {
        Operation *next = *value.user_begin();
        if (auto move = dyn_cast<RawPermuteOp>(next))
          hops += int64_t(move.getShift());
        value = next->getResult(0);
      }
      if ((part.key.hops + hops) % ranks != 0)
        return fail(part.op) << "has gradients of the keys of the rank " << part.key.hops << " further, which end at the rank " << (part.key.hops + hops) % ranks
                             << " further from these keys";
    }
    return success();
  }

  func::FuncOp function;
  Mesh mesh;
  llvm::DenseMap<std::pair<Value, Value>, Operation *> gradients;
};

struct VerifyRings : impl::VerifyRingsBase<VerifyRings> {
  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("main");
    if (function && failed(RingChecker(function).run()))
      signalPassFailure();
  }
};
} // namespace
} // namespace hpc
