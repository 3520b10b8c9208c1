// What Session buffers start with: opens the files of the plan's stored tensors once for all ranks, and copies to each
// rank just the slices that it holds. Every MiB that is read is checked against the plan's hash first, once, whichever
// rank comes to it first.
#pragma once

#include "runtime/base/File.h"
#include "runtime/core/Backend.h"
#include "runtime/core/WeightScales.h"

#include <atomic>
#include <map>
#include <string>

namespace hpc {

class Weights {
public:
  /// Opens the files of `plan`, which lie relative to `folder`. `replacement`, unless empty, stands in for them: a
  /// .safetensors file gives its tensors by name, checked by dtype and shape; a folder has them all under their base
  /// names; any other file has the bytes of the plan's one weight file, or of the one with the same base name.
  /// A plan that was compiled without the content of its weights needs a replacement: there is no hash that could tell
  /// whether what happens to lie at the place of a file is meant.
  /// `checkpoint`, unless empty, is a .safetensors file (Checkpoint.h) with all that the plan saves, by name: it goes
  /// before what bindings start with. What it has of onlyRead() goes before the plan's files, hashes or not: it may have
  /// been trained before it was frozen.
  static Expected<Weights> open(const plan::Plan &plan, const std::string &folder, const std::string &replacement,
                                const std::string &checkpoint = "");

  /// Fills the buffer of a binding with what it starts with. May be called by all ranks at once.
  Status load(const plan::Binding &binding, const plan::Buffer &buffer, Place place, Device &device,
              std::byte *target) const;
  /// A binding whose buffer may be filled in parts by several threads, where memory is the host's: a tensor of a file as it
  /// is stored, or its codes in int8, in runs that are worth it. Nothing for all others.
  struct Parts {
    SliceCopy slice;
    int32_t weight;
    std::vector<bool> touched; ///< chunks that the slice reads
    std::optional<int32_t> int8Along = {}; ///< of codes
  };
  std::optional<Parts> partsOf(const plan::Binding &binding, const plan::Buffer &buffer, Place place) const;
  /// Makes the scales of a weight in int8, for which all of it is read and checked; others: nothing to do. What loads it
  /// makes them too, but on one thread while others may wait.
  Status makeScales(const plan::Binding &binding) const;
  /// Bytes [begin, begin + bytes) of the buffer at `target`.
  Status loadPart(const Parts &parts, int64_t begin, int64_t bytes, std::byte *target) const;

  /// Of the tensors that the plan has no hashes of, so that processes can tell whether they have the same; 0: none. Of a
  /// tensor beyond a MiB it looks at 16 pieces of 64 KiB: enough to tell two models apart, not to find a flipped bit.
  uint64_t fingerprint() const;
  /// Likewise of the checkpoint, all its tensors and how far it is; 0: none.
  uint64_t checkpointFingerprint() const;

  /// The tensors of files that no step writes, frozen parameters among them: indices into Plan::weights, by name.
  std::vector<int32_t> onlyRead() const;
  /// All bytes of such a tensor, checked.
  Expected<const std::byte *> content(int32_t weight) const;

private:
  struct Source {
    const std::byte *data = nullptr;
    std::string path;                                 ///< for errors
    std::unique_ptr<std::atomic<uint8_t>[]> verified; ///< per chunk
  };
  Status checkContentIsKnown() const;
  Status openFiles(const std::string &folder, const std::string &replacement);
  Status resolveByOffset();
  Status resolveByName();
  Status resolveSaved(const std::string &checkpoint);
  Status check(int32_t weight, const std::vector<bool> &touched) const;
  Status checkChunk(int32_t weight, size_t chunk) const;
  Status checkAll(int32_t weight) const;
  Expected<const float *> scalesOf(int32_t weight, int32_t along) const;
  Status loadInt8(const plan::Binding &binding, const plan::Int8Weight &int8, const plan::Buffer &buffer, Place place,
                  std::byte *box) const;

  const plan::Plan *plan = nullptr;
  std::vector<MappedFile> files;
  std::vector<Source> sources; ///< per weight of the plan
  std::map<std::string, const std::byte *> saved; ///< of the checkpoint, by plan::Binding::saved
  std::string checkpointPath;                     ///< empty: none
  std::unique_ptr<WeightScales> scales = std::make_unique<WeightScales>();
};

} // namespace hpc
