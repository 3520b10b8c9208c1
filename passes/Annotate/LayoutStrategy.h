// A strategy lays tensors out on the ranks of the tensor axis, which it may arrange as several: it turns a program into
// seeds. It changes no op and inserts no collective; propagation and partition derive the rest from its seeds.
#pragma once

#include "compiler/Dialect/Dist/Dist.h"
#include "compiler/Dialect/Dist/MeshDegrees.h"
#include "passes/Annotate/DimTrace.h"

namespace hpc {

/// A cut of one dim of a value: `piece` is cut over the axes, outermost first. Without axes, nobody may cut the dim.
struct DimCut {
  unsigned dim = 0;
  Piece piece = {};
  std::vector<std::string> axes = {};
};

/// The cuts that a strategy wants for a value; several of one dim concern different pieces. Other passes may cut the dims that it does not name.
struct LayoutSeed {
  Value value;
  SmallVector<DimCut, 2> cuts;
  bool ofReaders = false; ///< what the value's readers want; the op that computes it may have it otherwise
};

/// The input of a strategy. The user's own seeds win: the pass drops a strategy's seed for a weight that the user has cut.
struct LayoutProgram {
  func::FuncOp function;
  dist::Mesh mesh;
  // Axes of more than one rank, outermost first.
  std::vector<std::string> axes;    ///< of role tensor
  std::vector<std::string> storageAxes; ///< the strategy's own whose ranks have other rows, and store weights in pieces
  nn::Dependences dependences;
  SmallVector<std::optional<int64_t>> batchDims; ///< of the arguments, as findBatchDims gives them

  /// Ranks of some axes.
  int64_t ranksOf(ArrayRef<std::string> axes) const;
  /// The user's rules for the parameters that a weight is, or is computed from (a reshaped kernel of a convolution).
  SmallVector<dist::Seed> userSeeds(Value weight) const;
  /// Whether these rules allow such a cut of a weight.
  bool mayCut(Value weight, const DimCut &cut) const;
};

struct LayoutStrategy {
  struct Axis {
    const char *name;
    dist::AxisRole role;
    bool storesPieces = false; ///< its ranks have other rows, and each stores a piece of a weight
  };
  const char *name;
  std::vector<Axis> axes; ///< that take the place of the tensor axis, outermost first: x of tp is the axis tp.x
  /// The first seed of a value counts.
  std::vector<LayoutSeed> (*seeds)(const LayoutProgram &program);
  /// Errors: what the program lacks for the layout. Null: nothing.
  Status (*check)(const LayoutProgram &program) = nullptr;
};

/// Whether there is a layout `1d+sp`, whose ranks also share the sequence (--sp), for `1d`. Errors (usage): there is none.
Status checkSharesSequence(StringRef layout);

/// The strategy of a layout `1d`, `2d`, `2d:2x3`. Errors (usage): no strategy has the name.
Expected<const LayoutStrategy *> findLayout(StringRef layout);

/// The names of all layouts for `ranks` ranks, each with its most even sizes: 1d, 2d:2x4. Without those that would have an axis of
/// one rank alone.
std::vector<std::string> layoutsOf(int64_t ranks);

/// The mesh with the strategy's own axes. Errors (usage): the sizes do not multiply to the tensor axis' size; no sizes are
/// given, and equal ones do not either.
Expected<dist::Mesh> arrangeTensorAxis(const dist::Mesh &mesh, StringRef layout);

/// Moves the sizes of a layout's own axes out of a sidecar's mesh: {"tp.x": 2, "tp.y": 3} becomes {"tp": 6}. Returns the layout with them, `2d:2x3`; `layout` is the one
/// that the sidecar names, "" = none. Errors (usage): the axes are those of no layout, of several, or do not multiply to "tp".
Expected<std::string> takeOwnAxes(dist::GivenSizes &mesh, StringRef layout);

/// Errors (usage): the mesh lacks an axis of the strategy, as one that was built for another layout does.
Status checkAxes(const LayoutStrategy &strategy, const dist::Mesh &mesh);

/// The names of a strategy's axes in a mesh that store pieces of weights and have more than one rank.
std::vector<std::string> storageAxes(const LayoutStrategy &strategy, const dist::Mesh &mesh);

/// Cuts a piece of a dim that lies in one part of it, which is uncut or cut over some of the axes alone.
void cutPiece(dist::DimSharding &dim, const DimCut &cut);
/// The sharding of a dim of `size` elements.
dist::DimSharding dimSharding(int64_t size, const DimCut &cut);

} // namespace hpc
