// How an op's results read its operands, and what an element costs: the questions of fusion, staging and lowering.
// Every op answers in ODS beside its name, so that no pass lists ops.
#pragma once

#include "compiler/MLIR.h"

namespace hpc {

/// Where an element of a result comes from.
enum class Access {
  Source,      ///< no operand's data: parameter, constant, iota
  Elementwise, ///< the elements of the operands at the same index, broadcast as NumPy does
  Alias,       ///< one operand, whose elements keep their row-major order: the same buffer under another shape
  Move,        ///< one operand, each element of which is read at most once, elsewhere: transpose, slice
  Repeat,      ///< one operand, each element of which may be read several times: broadcast
  Assemble,    ///< one of several operands, or a constant: concat, pad
  Lookup,      ///< where to read is data: embedding, gather
  Combine,     ///< many elements of one operand: reduce, cumsum
  Product,     ///< sums of products of two operands, for a library: matmul
  Composite,   ///< what its definition says (CompositeOpInterface)
};

/// How much work an element of a result is, its operands given. Ordered.
enum class Effort {
  None,      ///< no arithmetic: costs nothing to repeat but the reads
  Cheap,     ///< a few instructions: may be computed again for every reader
  Expensive, ///< many instructions or many reads: computed once if that can be helped
  Product,   ///< a contraction, or a composite of some: never computed twice
};

/// Op trait that gives StructureOpInterface its answers.
template <Access access, Effort effort> struct Structured {
  template <typename Op> struct Impl : OpTrait::TraitBase<Op, Impl> {
    Access getAccess() { return access; }
    Effort getEffort() { return effort; }
  };
};

} // namespace hpc

#include "compiler/Interfaces/Structure.h.inc"

namespace hpc {

/// What the op says; nothing for a null op and for ops that are not of one process (collectives, transfers, regions).
std::optional<Access> accessOf(Operation *op);
std::optional<Effort> effortOf(Operation *op);

/// Whether the op only shows its one operand in another way: an alias, a move or a repetition.
bool isView(Operation *op);

} // namespace hpc
