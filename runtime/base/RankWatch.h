// The state of a process's ranks in a step, for whoever finds out why a step does not go on (launch/Control).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hpc {

struct RankPosition {
  int64_t rank = 0;
  bool waits = false; ///< for other ranks
  std::string text;   ///< "step 12, 'forward' of micro-batch 1, instruction 7 (wait of node '/h.1/add') for a message from rank 1"
};

/// All functions may be called by any thread, while the ranks run.
class RankWatch {
public:
  virtual ~RankWatch() = default;

  /// A number that changes when a rank begins an instruction, and while one computes; nothing between two steps.
  virtual std::optional<uint64_t> progress() const = 0;
  /// Whether a rank waits for its device, whose progress is not known.
  virtual bool waitsForDevice() const = 0;
  /// The position of each rank.
  virtual std::vector<RankPosition> positions() const = 0;
};

} // namespace hpc
