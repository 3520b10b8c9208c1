// Who holds what: meshes, shardings and their algebra, as plain C++ without MLIR (the attribute wraps it).
//
// A sharding gives every dim of a tensor a list of sub-dims, major to minor, whose sizes multiply to the dim. A sub-dim
// may be cut over mesh axes. Written `[4@mb, 33, (3, 5@tp, 8)] partial{tp}`; two axes on one sub-dim: `8@(dp, tp)`.
// test/unit/dist/BruteForce.h spells out what that means as lists of elements, without any of the code here.
#pragma once

#include "runtime/base/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hpc::dist {

/// What an axis is for. Passes ask the role, never the name.
enum class AxisRole {
  Time,     ///< micro-batches: the coordinate is time, so only sums cross it (`accumulate`)
  Data,     ///< cuts rows, of the batch first; parameters are whole over it in use, and may be cut over it in storage
  Tensor,   ///< cuts weights
  Sequence, ///< cuts rows, of the sequence alone; as data in all else
  Pipeline, ///< stages
};
/// "time", "data", ...
const char *name(AxisRole role);

/// The named axes of devices and of time. Written `mb=2:time, dp=2:data, tp=2:tensor`; an axis without a role is an
/// error of the parser, so that no role is ever guessed from a name.
struct Mesh {
  struct Axis {
    std::string name;
    int64_t size = 1;
    AxisRole role = AxisRole::Tensor;
    bool operator==(const Axis &other) const {
      return name == other.name && size == other.size && role == other.role;
    }
  };
  std::vector<Axis> axes;

  /// Names of the axes whose ranks have other rows, in the mesh's order, and the product of their sizes.
  std::vector<std::string> rowAxes() const;
  int64_t rowRanks() const;
  /// Names of the axes of a role, in the mesh's order.
  std::vector<std::string> axesOf(AxisRole role) const;
  /// Whether the mesh has the axis, and it has the role.
  bool hasRole(std::string_view axis, AxisRole role) const;
  /// Product of the sizes of the axes of a role.
  int64_t sizeOf(AxisRole role) const;

  /// Size of an axis; 1 for a name that the mesh does not have.
  int64_t size(std::string_view axis) const;
  /// Position of an axis in `axes`, or -1.
  int index(std::string_view axis) const;
  /// Product of all sizes.
  int64_t numCoordinates() const;
  /// The coordinate (one number per axis) of a row-major index, the last axis fastest.
  std::vector<int64_t> coordinate(int64_t index) const;
  bool operator==(const Mesh &other) const { return axes == other.axes; }
};

/// One digit of a dim's mixed-radix index. `axes` cut it in order: the first cuts `size`, the next the block of the
/// first.
struct SubDim {
  int64_t size = 1;
  std::vector<std::string> axes;
  bool operator==(const SubDim &other) const { return size == other.size && axes == other.axes; }
};

/// A dim: sub-dims major to minor. An empty list is a dim of size 1.
using DimSharding = std::vector<SubDim>;

struct Sharding {
  std::vector<DimSharding> dims;
  std::vector<std::string> partial; ///< axes over which the value is a partial sum; sorted
  bool operator==(const Sharding &other) const { return dims == other.dims && partial == other.partial; }
  bool operator!=(const Sharding &other) const { return !(*this == other); }
};

/// The coordinate that is `shift` further along an axis of the mesh, in a ring.
std::vector<int64_t> further(std::vector<int64_t> coordinate, const Mesh &mesh, std::string_view axis, int64_t shift);

// ---- text ---------------------------------------------------------------------------------------

Expected<Mesh> parseMesh(std::string_view text);
Expected<Sharding> parseSharding(std::string_view text);
std::string toString(const Mesh &mesh);
std::string toString(const DimSharding &dim);
std::string toString(const Sharding &sharding);

// ---- construction and queries -------------------------------------------------------------------

/// Every dim one uncut sub-dim, nothing partial.
Sharding replicated(const std::vector<int64_t> &shape);
int64_t globalSize(const DimSharding &dim);
/// Whether the sizes of the sub-dims multiply to what an int64_t holds; a sharding that is parsed always does.
bool fitsInt64(const DimSharding &dim);
std::vector<int64_t> globalShape(const Sharding &sharding);
/// Axes that cut any sub-dim, in order of appearance (partial axes not included).
std::vector<std::string> cutAxes(const Sharding &sharding);
bool isCut(const DimSharding &dim);
bool isReplicated(const Sharding &sharding);
/// `axes` of the list that have the role.
std::vector<std::string> axesWithRole(const std::vector<std::string> &axes, const Mesh &mesh, AxisRole role);
/// Whether ranks along an axis of the role have other rows: data and sequence.
bool cutsRows(AxisRole role);
/// `axes` of the list whose ranks have other rows.
std::vector<std::string> rowAxesOf(const std::vector<std::string> &axes, const Mesh &mesh);
/// Whether an axis is of those that cut rows or a batch: time, data or sequence.
bool cutsBatch(const std::vector<std::string> &axes, const Mesh &mesh);
/// Whether the value is cut or partial over time: there is one of it in every micro-batch, else one in every step.
bool isPerMicroBatch(const Sharding &sharding, const Mesh &mesh);
/// The sharding without the axes whose ranks have other rows, in normal form: how a parameter is used is how it is
/// stored, whole over these.
Sharding withoutRows(const Sharding &sharding, const Mesh &mesh);
/// Errors: an axis that the mesh lacks, an axis used twice (cut or partial), a size < 0. `shape` must be the global
/// shape.
Status verify(const Sharding &sharding, const std::vector<int64_t> &shape, const Mesh &mesh);

/// The normal form: axes of size 1 dropped, sub-dims of size 1 dropped unless cut, uncut neighbours merged, and
/// (a@X, b) written (a*b)@X where both hold the same elements (equal blocks). Two normal forms are equal exactly when
/// every coordinate holds the same elements at the same local index. A dim of size 1 that is uncut is the empty list.
DimSharding normalize(const DimSharding &dim, const Mesh &mesh);
Sharding normalize(const Sharding &sharding, const Mesh &mesh);

// ---- local boxes --------------------------------------------------------------------------------

/// Width of the local box of one sub-dim: the last nested block, ceil(ceil(size/k1)/k2)...; the same on all ranks.
int64_t boxSize(const SubDim &sub, const Mesh &mesh);
/// Product of the boxes of the sub-dims.
int64_t boxSize(const DimSharding &dim, const Mesh &mesh);
std::vector<int64_t> boxShape(const Sharding &sharding, const Mesh &mesh);

/// The digits that a coordinate holds of one sub-dim: start .. start+extent-1; extent may be 0.
struct Range {
  int64_t start = 0, extent = 0;
};
Range heldDigits(const SubDim &sub, const Mesh &mesh, const std::vector<int64_t> &coordinate);
/// Whether any coordinate's box of this dim holds padding.
bool hasPadding(const DimSharding &dim, const Mesh &mesh);
/// The local index of global index `index` of a dim at `coordinate`, or -1 when it is not held there.
int64_t localIndex(const DimSharding &dim, const Mesh &mesh, const std::vector<int64_t> &coordinate, int64_t index);
/// The inverse: the global index at a local index, or -1 for padding.
int64_t globalIndex(const DimSharding &dim, const Mesh &mesh, const std::vector<int64_t> &coordinate, int64_t local);

// ---- views --------------------------------------------------------------------------------------

/// Writes `dim` as consecutive groups of sub-dims with the given global sizes (whose product is the dim's size),
/// holding the same elements: (5@tp, 8) over {5, 8} is {[5@tp], [8]}; 40@2 over {4, 10} is {[4@tp], [10]}; over {5, 8}
/// it has no answer (returns false), since 40@tp holds 20/20 and 5@tp, 8 holds 24/16. The concatenation of the result
/// normalizes to `dim`.
bool splitAt(const DimSharding &dim, const std::vector<int64_t> &sizes, const Mesh &mesh,
             std::vector<DimSharding> &groups);

// ---- resharding ---------------------------------------------------------------------------------

/// One step from a sharding to the next. All steps keep the invariant: `after` of one is `before` of the next.
struct ReshardStep {
  enum Kind {
    Slice,         ///< no communication: each rank keeps part of what it holds
    Permute,       ///< ranks exchange whole boxes (axes trade places)
    AllToAll,      ///< `axis` moves from cutting `fromDim` to cutting `toDim`
    AllGather,     ///< `axis` no longer cuts `fromDim`
    AllReduce,     ///< `axes` are no longer partial
    Accumulate,    ///< `axes` of time are no longer partial: the micro-batches are added up; nothing moves
    ReduceScatter, ///< `axis` is no longer partial and now cuts `toDim`
  } kind;
  std::vector<std::string> axes; ///< one axis; AllReduce, Accumulate: all at once; Permute: all that trade places
  int fromDim = -1, toDim = -1;
  /// AllGather, AllToAll: the sub-dim of before.dims[fromDim] that the axis cuts as its last axis.
  int fromSub = -1;
  /// Slice, AllToAll, ReduceScatter: the sub-dim of after.dims[toDim] that the axis then cuts as its last axis.
  int toSub = -1;
  Sharding before, after; ///< not normalized: sub-dims are split so that the step acts on a whole sub-dim
};

/// The steps that turn `from` into `to` (same global shape): partial axes first (accumulate over time, so that what
/// follows is done once a step; reduce-scatter where `to` wants the axis cut and `from` leaves room; one all-reduce over
/// all others), then slice, permute, all-to-all, gather until nothing is left.
/// `to` may not be partial over an axis that `from` is not. The last step's `after` normalizes to `to`; no steps when
/// they are equal already.
Expected<std::vector<ReshardStep>> planReshard(const Sharding &from, const Sharding &to, const Mesh &mesh);

/// Permute: the coordinate whose whole box (same sub-dims, same layout) the rank at `coordinate` takes. It differs from
/// `coordinate` in the step's axes only, and no two ranks take from the same one.
std::vector<int64_t> permuteSource(const ReshardStep &step, const Mesh &mesh, const std::vector<int64_t> &coordinate);

/// Bytes that one rank receives for the steps (ring algorithms: all-gather (k-1)/k of the result, all-reduce twice
/// that, ...).
int64_t bytesMoved(const std::vector<ReshardStep> &steps, const Mesh &mesh, int64_t elementBytes);

} // namespace hpc::dist
