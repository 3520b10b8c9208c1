// The parts of buffers that instructions use apart from each other: the terms of a bucket of gradients each have their own
// writers and readers, and only the collective touches them all. What a check knows of content, it knows by region.
#pragma once

#include "runtime/plan/Access.h"


namespace hpc::plan {

/// Bytes [begin, end) of a buffer. Accesses that overlap are of one region, whose other bytes are padding.
struct Region {
  int32_t buffer = -1;
  int64_t begin = 0, end = 0;
};

class Regions {
public:
  /// Of an instruction; accesses of no bytes count nowhere.
  void add(const Instruction &instruction, const std::vector<BufferAccess> &accesses);
  /// Once all are there.
  void finish();

  /// By buffer, then begin.
  const std::vector<Region> &all() const { return regions; }
  /// The regions that an access touches: one, or those of a posted collective in place. Numbers first .. last-1 of all().
  std::pair<size_t, size_t> of(const BufferAccess &access) const;

private:
  std::vector<Region> uses, spans; ///< what makes regions, and what makes one only where there is none
  std::vector<Region> regions;
};

} // namespace hpc::plan
