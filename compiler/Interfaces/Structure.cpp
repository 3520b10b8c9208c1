// Definitions generated for the structure interface, and its answers for any op.
#include "compiler/Interfaces/Structure.h"

#include "compiler/Interfaces/Structure.cpp.inc"

namespace hpc {

std::optional<Access> accessOf(Operation *op) {
  auto structured = dyn_cast_if_present<StructureOpInterface>(op);
  return structured ? std::optional(structured.getAccess()) : std::nullopt;
}

std::optional<Effort> effortOf(Operation *op) {
  auto structured = dyn_cast_if_present<StructureOpInterface>(op);
  return structured ? std::optional(structured.getEffort()) : std::nullopt;
}

bool isView(Operation *op) {
  std::optional<Access> access = accessOf(op);
  return access == Access::Alias || access == Access::Move || access == Access::Repeat;
}

} // namespace hpc
