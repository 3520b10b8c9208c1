// The body of one program: ops that belong to it, and what is cheap to repeat as far as they read it.
#pragma once

#include "compiler/Dialect/Pipe/Pipe.h"
#include "llvm/ADT/SetVector.h"

namespace hpc {

/// Which ops a program computes to know some values, and what it takes from outside.
struct ProgramBody {
  llvm::SetVector<Value> outside; ///< arguments of the function first, then values of other programs
  SmallVector<Operation *> ops;   ///< in program order
};

/// `own` are the program's ops; `wanted` are values that it shall know beside what they read. `comesFrom` says of a value
/// that no op of `own` makes whether another program gives it; what nobody gives is computed here.
ProgramBody findBody(ArrayRef<Operation *> own, ArrayRef<Value> wanted, llvm::function_ref<bool(Value)> comesFrom);

/// The program of `body`, which gives `yields`; `operands` stand for what it takes from outside, in that order.
pipe::StageOp createProgram(OpBuilder &builder, Location place, size_t stage, size_t chunk, pipe::ProgramKind kind,
                            const ProgramBody &body, ArrayRef<Value> operands, ArrayRef<Value> yields);

} // namespace hpc
