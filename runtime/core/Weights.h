// What Session buffers start with: opens the files of the plan's stored tensors once for all ranks, and copies to each
// rank just the slices that it holds. Every MiB that is read is checked against the plan's hash first, once, whichever
// rank comes to it first.
#pragma once

#include "runtime/base/File.h"
#include "runtime/core/Backend.h"
#include "runtime/core/TensorFiles.h"
#include "runtime/core/WeightScales.h"

#include <atomic>
#include <map>
#include <mutex>
#include <string>

namespace hpc {

/// Where the tensors of a plan come from.
struct WeightFiles {
  std::string planFolder;      ///< what the plan's own files are relative to
  std::string replacement;     ///< a file or folder instead of them; "": none
  std::string checkpoint = {}; ///< a file of --save, or the folder of one checkpoint; "": none
  bool followLinks = false;    ///< external data of the replacement may be links
};

class Weights {
public:
  /// Opens the files of `plan`. `files.replacement` stands in for them: tensors by name, of the kinds of files that TensorFiles
  /// reads. Names are matched as TensorNames.h says, types may be narrower ones of which each number is exact, and all that does not
  /// match is one error. A file without names stands in for one of the plan's only where the plan's hashes prove it. Training may begin
  /// from other weights than those that the plan was compiled with: what has a name in the replacement has no hashes then, and a tensor
  /// that is not trained comes from the plan's own files where the replacement lacks it.
  /// A plan that was compiled without the content of its weights needs a replacement: there is no hash that could tell
  /// whether what happens to lie at the place of a file is meant.
  /// `files.checkpoint` has all that the plan saves (CheckpointFiles.h), by name: it goes before what bindings start with. What it
  /// has of onlyRead() goes before the plan's files, hashes or not: it may have been trained before it was frozen.
  static Expected<Weights> open(const plan::Plan &plan, const WeightFiles &files);

  /// What was read otherwise than equal names say, and what was not read: for people.
  const std::vector<std::string> &notes() const { return told; }

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

  /// Of the tensors that the plan has no hashes of, so that processes can tell whether they have the same; 0: none.
  uint64_t fingerprint() const;
  /// Likewise of the checkpoint, all its tensors and how far it is; 0: none.
  uint64_t checkpointFingerprint() const;

  /// The tensors of files that no step writes, frozen parameters among them: indices into Plan::weights, by name. Without what an
  /// exporter made, which is no part of a model's state.
  std::vector<int32_t> onlyRead() const;
  /// All bytes of such a tensor in the plan's type, checked.
  Expected<const std::byte *> content(int32_t weight) const;

private:
  /// All of a tensor in the plan's own type and orientation, where the file has it otherwise; made when it is first asked for.
  struct Converted {
    std::once_flag once;
    std::vector<std::byte> bytes;
    Status status;
  };
  struct Source {
    const std::byte *data = nullptr;
    std::string path;          ///< for errors
    DType dtype = DType::F32;  ///< as stored
    bool isTransposed = false; ///< likewise: rank 2, its dims exchanged
    bool mayDiffer = false;    ///< from what the plan was compiled with: training begins from other weights
    std::unique_ptr<std::atomic<uint8_t>[]> verified; ///< per chunk
    std::unique_ptr<Converted> converted = std::make_unique<Converted>();
  };

  // WeightSources.cpp
  Status checkContentIsKnown() const;
  Status openOwnFiles(const WeightFiles &files);
  Status resolveByOffset(const plan::Weight &weight, Source &source) const;
  Status openReplacement(const WeightFiles &files);
  Status replaceByOffset(const WeightFiles &files);
  Status resolveByName(const WeightFiles &files);
  std::string problemOf(size_t weight, const std::string &name, const NamedTensor &found, bool isOrigin, std::optional<DType> trained) const;
  Status resolveSaved(const WeightFiles &files);
  Status openSaved(const WeightFiles &files);
  Status openStates(const WeightFiles &files);
  Status takeSaved(const std::string &name, DType dtype, const std::vector<int64_t> &shape, const std::string &path,
                   const NamedTensor &found, const std::byte *&data) const;
  void forget(size_t weight, const std::byte *data, const std::string &path);

  // Weights.cpp
  bool isStoredAsItIs(int32_t weight) const;
  Expected<const std::byte *> whole(int32_t weight) const;
  Status convert(int32_t weight) const;
  Status check(int32_t weight, const std::vector<bool> &touched) const;
  Status checkChunk(int32_t weight, size_t chunk) const;
  Status wrongChunk(int32_t weight, size_t chunk) const;
  Status checkAll(int32_t weight) const;
  Expected<const float *> scalesOf(int32_t weight, int32_t along) const;
  Status loadInt8(const plan::Binding &binding, const plan::Int8Weight &int8, const plan::Buffer &buffer, Place place,
                  std::byte *box) const;

  const plan::Plan *plan = nullptr;
  std::vector<MappedFile> own;          ///< of the plan's files those that are read
  std::optional<TensorFiles> replaced;  ///< files of `replacement`
  std::optional<TensorFiles> saving, states; ///< files of the checkpoint
  uint64_t savedState = 0; ///< hash of its state.json; 0 of a single file
  std::vector<Source> sources;          ///< per weight of the plan
  std::vector<std::string> told;
  std::map<std::string, const std::byte *> saved; ///< of the checkpoint, by plan::Binding::saved
  std::unique_ptr<WeightScales> scales = std::make_unique<WeightScales>();
};

} // namespace hpc
