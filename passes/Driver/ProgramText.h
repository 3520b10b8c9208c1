// The text of a program between two phases. The node that an op comes from, and the part of a training step that it is, stand in an attribute of the op:
// the text means the same with and without debug information.
#pragma once

#include "compiler/MLIR.h"

#include <string>

namespace mlir {
class PassManager;
}

namespace hpc {

/// Every op but those of unknown origin has locationAttrName (compiler/Location.h), their blocks' arguments likewise.
std::string programText(ModuleOp module);

/// Makes the attributes of a program that was read its locations again, and takes them away. Error: one that is no location.
LogicalResult takeLocations(ModuleOp module);

/// Adds passes between takeLocations and, where the program had such attributes, the writing of new ones.
LogicalResult addWithLocations(PassManager &manager, llvm::function_ref<LogicalResult()> addPasses);

} // namespace hpc
