// Forward of one part of the model as recompute sees it: its ops, and the values that gradients read.
//
// Gradients are in programs of their own, or after the graph's ops in the program of forward itself (one stage, and a
// schedule that needs no more). In both cases no op of the graph depends on a gradient.
#pragma once

#include "compiler/Dialect/Pipe/Pipe.h"
#include "runtime/plan/Schedule.h"

#include "llvm/ADT/SetVector.h"

namespace hpc {

struct ForwardPart {
  mutable pipe::StageOp forward;      ///< a handle: asking it something is no change
  SmallVector<pipe::StageOp> readers; ///< backward and weight gradient of the same part
  SmallVector<Operation *> ops;       ///< of the graph and the loss, in program order
  llvm::SetVector<Value> read;        ///< results of `ops` that gradients read, in program order
  int64_t slots = 1;                  ///< micro-batches whose values are kept at the same time
  llvm::DenseSet<Value> sameAlways;   ///< results of `ops` that are equal in all micro-batches: computed from weights alone
  /// Ops that gather parameters or operands of products in panels, or compute such values from gathered ones; and ops that only these read.
  llvm::DenseSet<Operation *> gathers;
  /// Ops that gather activations for products with gathered weights, up to the product. Where ranks store weights in pieces,
  /// they keep pieces of activations, too, and gather them again; `auto` weighs that.
  llvm::DenseSet<Operation *> activationGathers;
  /// The same for products with whole weights, whose rows ranks share in between (--sp).
  llvm::DenseSet<Operation *> rowGathers;
  int64_t lastBlock = -1;

  int64_t stage() const { return int64_t(forward.getIndex()); }
  bool has(Operation *op) const { return op && members.contains(op); }
  llvm::DenseSet<Operation *> members; ///< `ops`
};

/// Every forward program of a staged function, in order. `panels`: operands of products are gathered in panels (compiler/Panels.h), and no program
/// keeps them whole for another.
std::vector<ForwardPart> findForwardParts(func::FuncOp function, const plan::PipelineSchedule &schedule, bool panels = false);

} // namespace hpc
