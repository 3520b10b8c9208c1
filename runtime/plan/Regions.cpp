// Overlapping intervals become one.
#include "runtime/plan/Regions.h"

#include "runtime/plan/CheckedMath.h"

#include <algorithm>
#include <tuple>

namespace hpc::plan {

namespace {

bool isBefore(const Region &a, const Region &b) { return std::tie(a.buffer, a.begin) < std::tie(b.buffer, b.begin); }

/// A posted all-reduce in place: it takes what lies there as it is.
bool isSpan(const Action &action) {
  const auto *collective = std::get_if<Collective>(&action);
  return collective && collective->kind == CollectiveKind::AllReduce && collective->request >= 0 &&
         collective->src.buffer == collective->dst.buffer && collective->src.byteOffset == collective->dst.byteOffset;
}

std::vector<Region> merged(std::vector<Region> uses) {
  std::sort(uses.begin(), uses.end(), isBefore);
  std::vector<Region> regions;
  for (const Region &use : uses) {
    if (!regions.empty() && regions.back().buffer == use.buffer && use.begin < regions.back().end)
      regions.back().end = std::max(regions.back().end, use.end);
    else
      regions.push_back(use);
  }
  return regions;
}

} // namespace

void Regions::add(const Instruction &instruction, const std::vector<BufferAccess> &accesses) {
  for (const BufferAccess &access : accesses)
    if (access.bytes > 0)
      (isSpan(instruction.action) ? spans : uses)
          .push_back({access.ref.buffer, access.ref.byteOffset, addSizes(access.ref.byteOffset, access.bytes)});
}

void Regions::finish() {
  regions = merged(std::move(uses));
  std::vector<Region> alone;
  for (const Region &span : spans) {
    auto next = std::lower_bound(regions.begin(), regions.end(), span, [](const Region &region, const Region &span) {
      return std::tie(region.buffer, region.end) <= std::tie(span.buffer, span.begin);
    });
    if (next == regions.end() || next->buffer != span.buffer || next->begin >= span.end)
      alone.push_back(span);
  }
  alone = merged(std::move(alone));
  regions.insert(regions.end(), alone.begin(), alone.end());
  std::sort(regions.begin(), regions.end(), isBefore);
  spans.clear();
}

std::pair<size_t, size_t> Regions::of(const BufferAccess &access) const {
  const Region wanted{access.ref.buffer, access.ref.byteOffset, addSizes(access.ref.byteOffset, access.bytes)};
  auto first = std::lower_bound(regions.begin(), regions.end(), wanted, [](const Region &region, const Region &wanted) {
    return std::tie(region.buffer, region.end) <= std::tie(wanted.buffer, wanted.begin);
  });
  auto last = first;
  while (access.bytes > 0 && last != regions.end() && last->buffer == wanted.buffer && last->begin < wanted.end)
    ++last;
  return {size_t(first - regions.begin()), size_t(last - regions.begin())};
}

} // namespace hpc::plan
