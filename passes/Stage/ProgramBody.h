// The body of one program: its own ops, and the ops cheap to repeat that they read.
#pragma once

#include "compiler/Dialect/Pipe/Pipe.h"
#include "llvm/ADT/SetVector.h"

namespace hpc {

/// The ops with which a program computes some values, and the values that it takes from outside.
struct ProgramBody {
  llvm::SetVector<Value> outside; ///< arguments of the function first, then values of other programs
  SmallVector<Operation *> ops;   ///< in program order
};

/// `own` are the program's ops; `wanted` are further values that it computes. `comesFrom` returns whether another
/// program provides a value that no op of `own` makes; the values that no program provides are computed here.
ProgramBody findBody(ArrayRef<Operation *> own, ArrayRef<Value> wanted, llvm::function_ref<bool(Value)> comesFrom);

/// The program of `body`, which yields `yields`; `operands` are the values for `body.outside`, in that order.
pipe::StageOp createProgram(OpBuilder &builder, Location place, size_t stage, size_t chunk, pipe::ProgramKind kind,
                            const ProgramBody &body, ArrayRef<Value> operands, ArrayRef<Value> yields);

} // namespace hpc
