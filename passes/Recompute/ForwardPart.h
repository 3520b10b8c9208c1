// Forward of one part of the model as recompute sees it: its ops, and which of their values gradients read.
//
// Gradients are in programs of their own, or behind the graph's ops in the very program of forward (one stage, no
// schedule that wants more). In both cases a gradient is what no op of the graph depends on.
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
  int64_t slots = 1;                  ///< micro-batches of which a value is kept at once
  llvm::DenseSet<Value> sameAlways;   ///< results of `ops` that are the same in every micro-batch: what is made of weights alone
  /// Ops that make such values, and gather parameters on the way; and what is made for these alone.
  llvm::DenseSet<Operation *> gathers;
  int64_t lastBlock = -1;

  int64_t stage() const { return int64_t(forward.getIndex()); }
  bool has(Operation *op) const { return op && members.contains(op); }
  llvm::DenseSet<Operation *> members; ///< `ops`
};

/// Every forward program of a staged function, in order.
std::vector<ForwardPart> findForwardParts(func::FuncOp function, const plan::PipelineSchedule &schedule);

} // namespace hpc
