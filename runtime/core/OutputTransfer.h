// Brings what ranks of other processes store of the outputs to the process of rank 0, which writes them.
// Both sides know from the plan which slices there are and in what order, so nothing but their bytes is sent.
#pragma once

#include "runtime/base/Array.h"
#include "runtime/core/Backend.h"

namespace hpc {

/// Beyond any channel of a plan.
extern const int32_t outputChannel;

/// One rank's side. A rank of another process keeps a copy of every box that it stores, since the buffer may be used
/// again, and sends all of them after its last program; rank 0 receives from those ranks, one after the other.
class OutputTransfer {
public:
  /// `request` is one that nothing else uses.
  static Expected<OutputTransfer> create(const plan::Plan &plan, RankPlace place, RankRange ranks, Device &device,
                                         Communicator &communicator, int64_t request);

  /// Whether this rank's process has the outputs, so that it stores them itself.
  bool isHome() const { return home; }
  /// Before the first program: whether outputs on request are stored in this step.
  void begin(bool withRequested) {
    next = 0;
    requested = withRequested;
  }
  /// In place of storing: the next one of those that this rank owns, in the order of its schedule.
  Status keep(const std::byte *source);
  /// After the last program.
  Status finish(std::vector<Array> &outputs);

private:
  /// One slice of one output, as its owner has it.
  struct Piece {
    int64_t owner; ///< rank
    int32_t output;
    SliceCopy slice;
    std::byte *box; ///< on the device: kept here, or received into
    bool onRequest;
  };
  bool isSkipped(const Piece &piece) const { return piece.onRequest && !requested; }
  static void addPieces(const plan::Plan &plan, int64_t rank, std::vector<Piece> &pieces);

  Device *device = nullptr;
  Communicator *communicator = nullptr;
  int64_t request = 0;
  bool home = true;
  std::vector<Piece> pieces; ///< home: of all ranks of other processes, for rank 0; else this rank's
  size_t next = 0;
  bool requested = true;
};

} // namespace hpc
