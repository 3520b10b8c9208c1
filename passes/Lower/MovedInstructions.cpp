#include "passes/Lower/MovedInstructions.h"

namespace hpc {

std::optional<size_t> MovedInstructions::lastKept(size_t instruction) const {
  for (; moved.count(instruction); --instruction)
    if (instruction == 0)
      return std::nullopt;
  return instruction;
}

/// The last instruction that moves among those that have written a value where it was noted.
static std::optional<size_t> movedWriter(const MovedInstructions &moves, const LoweredValue &value) {
  for (auto at = moves.moved.upper_bound(size_t(value.instruction)); at != moves.moved.begin();)
    for (const plan::BufferAccess &access : moves.accesses[*--at])
      if (access.write && access.ref.buffer == value.place.buffer)
        return *at;
  return std::nullopt;
}

int64_t MovedInstructions::placeOf(const LoweredValue &value) const {
  const size_t noted = size_t(value.instruction);
  std::optional<size_t> writer = movedWriter(*this, value);
  std::optional<size_t> kept = writer == noted ? std::nullopt : lastKept(noted);
  int64_t place = kept ? now[*kept] : 0;
  return writer ? std::max(place, now[*writer]) : place;
}

void sortByPlace(std::vector<LoweredValue> &values) {
  llvm::sort(values, [](const LoweredValue &a, const LoweredValue &b) {
    return std::tie(a.stage, a.program, a.instruction, a.id) < std::tie(b.stage, b.program, b.instruction, b.id);
  });
}

} // namespace hpc
