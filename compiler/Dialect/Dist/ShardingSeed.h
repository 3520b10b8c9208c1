// What somebody wants of one value before propagation: a sharding, dim by dim open or closed, with a priority.
// Plain C++; the attribute `#dist.seed<"[4@(mb, dp), 33?]", priority = 0, origin = "sidecar">` wraps it (Dist.h).
#pragma once

#include "compiler/Dialect/Dist/Sharding.h"

namespace hpc::dist {

struct Seed {
  Sharding sharding;
  /// By dim: whether others may cut it, written `33?`. A dim that the seed cuts is closed.
  std::vector<bool> open;
  /// Lower ones flow to the end before higher ones begin, so that nothing overrules them. Any integer.
  int64_t priority = 1;
  /// Who wants it, for people: "the sidecar's cut of wte.weight".
  std::string origin = "layout";

  /// The user's own word: an op that cannot follow it is an error, where a default would yield.
  bool isBinding() const { return origin == sidecarOrigin; }
  static constexpr const char *sidecarOrigin = "sidecar";

  bool operator==(const Seed &other) const {
    return sharding == other.sharding && open == other.open && priority == other.priority && origin == other.origin;
  }
};

/// The seed of a default layout: dims that it leaves uncut are open, except where it cuts nothing at all ("stay whole").
/// `#dist.sharding<...>` as a seed is short for it.
Seed layoutSeed(Sharding sharding);

/// `[4@(mb, dp), 33?]`: the sharding with its open dims.
std::string shardingText(const Seed &seed);
/// The inverse, with the default priority and origin.
Expected<Seed> parseSeedSharding(std::string_view text);

} // namespace hpc::dist
