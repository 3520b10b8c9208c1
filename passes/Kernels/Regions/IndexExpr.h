// Symbolic index arithmetic: an index is a sum over loop variables, so that reshapes which split and merge dims cost
// nothing, loads of one element are recognised as one, and LLVM sees {base, stride} of the inner loop.
#pragma once

#include "compiler/MLIR.h"

#include <map>

namespace hpc::kernels {

/// constant + sum of coefficient * atom. Atoms are loop variables and numbers that no sum describes (quotients, clamped
/// ids); IndexBuilder numbers them in the order in which they are made, so that equal code gets equal indices.
struct IndexExpr {
  struct Term {
    int atom;
    int64_t coefficient;
    bool operator==(const Term &other) const { return atom == other.atom && coefficient == other.coefficient; }
    bool operator<(const Term &other) const {
      return std::tie(atom, coefficient) < std::tie(other.atom, other.coefficient);
    }
  };
  int64_t constant = 0;
  std::vector<Term> terms; ///< by atom; no coefficient is 0

  IndexExpr(int64_t constant = 0) : constant(constant) {}
  bool isConstant() const { return terms.empty(); }
  bool operator==(const IndexExpr &other) const { return constant == other.constant && terms == other.terms; }
  bool operator<(const IndexExpr &other) const {
    return std::tie(constant, terms) < std::tie(other.constant, other.terms);
  }
};

/// Makes and simplifies indices; emits code only for numbers that are no sum, and in `value`.
class IndexBuilder {
public:
  /// `entry`: the function's first block, where constants go.
  IndexBuilder(OpBuilder &builder, Location loc, Block *entry) : builder(builder), loc(loc), entry(entry), scopes(1) {}

  /// A number of 0..extent-1 that no sum describes.
  IndexExpr atom(Value value, int64_t extent);

  static IndexExpr mul(const IndexExpr &a, int64_t b);
  IndexExpr add(const IndexExpr &a, const IndexExpr &b);
  /// a = quotient * b + remainder; a >= 0.
  std::pair<IndexExpr, IndexExpr> split(const IndexExpr &a, int64_t b);
  /// min(max(a, 0), size - 1), for indices that data or a neighbour's part decide.
  IndexExpr clamp(const IndexExpr &a, int64_t size);
  IndexExpr clamp(Value a, int64_t size);

  /// The numbers that `a` can be.
  struct Range {
    __int128 min, max;
  };
  Range range(const IndexExpr &a) const;
  /// low <= a < high; null when that always holds.
  Value isWithin(const IndexExpr &a, int64_t low, int64_t high);
  Value isWithin(Value a, Value low, Value high);

  Value constant(int64_t value);
  /// The sum as an i64, outer loops first.
  Value value(const IndexExpr &a);

  /// Atoms made between the two are forgotten: they are not visible after the loop.
  void enterLoop() { scopes.emplace_back(); }
  void leaveLoop();

private:
  struct Atom {
    Value value;
    int64_t extent;
  };
  struct Scope {
    std::map<std::pair<IndexExpr, int64_t>, std::pair<IndexExpr, IndexExpr>> splits;
    std::map<std::pair<IndexExpr, int64_t>, IndexExpr> clamps;
    std::map<IndexExpr, Value> values;
  };
  /// quotient * divisor + remainder is whole, of two atoms.
  struct Parts {
    IndexExpr whole;
    int quotient, remainder;
    int64_t divisor;
    size_t depth; ///< of the scope that it was made in
  };
  IndexExpr joinParts(IndexExpr a) const;

  OpBuilder &builder;
  Location loc;
  Block *entry;
  std::vector<Atom> atoms;
  std::vector<Parts> parts;
  std::vector<Scope> scopes; ///< innermost last
  std::map<int64_t, Value> constants;
};

} // namespace hpc::kernels
