// The tokens of one file, mapped, in any of the formats in which tokens come; the content says which it is. Reading gives pages back from time
// to time, so that a large file never stays in memory as a whole.
#pragma once

#include "runtime/base/DType.h"
#include "runtime/base/File.h"

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

namespace hpc::text {

/// Facts about a .bin without a header, as nanoGPT writes it.
struct RawTokens {
  int64_t bits = 0;                 ///< 16 or 32; 0: the content decides
  int64_t vocabulary = INT64_MAX;   ///< ids are below
};

class TokenArray {
public:
  /// - .npy: one dim of integers. Beside it NAME.documents.npy may hold, as 64-bit integers, where documents begin.
  /// - llm.c: 256 32-bit integers, which begin with the magic number, the version and the number of tokens, then the tokens: of 16 bits
  ///   (20240520, version 1), of 32 (20240520, version 2; 20240801, version 7) (dev/data/data_common.py).
  /// - Megatron-LM: NAME.idx with NAME.bin; either is named, or NAME (megatron/core/datasets/indexed_dataset.py). Each sequence is a document.
  /// - any other file named .bin, or any at all where `raw` gives the bits: tokens of 16 or 32 bits, little endian.
  /// `notes`: receives how a .bin was read where that is not sure. Errors (Usage, Io) name file and place.
  static Expected<TokenArray> open(const std::string &path, const RawTokens &raw, std::vector<std::string> &notes);

  const std::string &path() const { return name; }
  int64_t size() const { return count; } ///< tokens
  DType dtype() const { return type; }

  bool knowsDocuments() const { return documentStarts; }
  int64_t documents() const { return documentCount; }
  /// The tokens [first, second) of a document.
  std::pair<int64_t, int64_t> document(int64_t number) const;

  /// Copies tokens [first, first + count). Threads may call it at once.
  void take(int64_t first, int64_t count, int64_t *to) const;

  /// A hash of all tokens and of where documents begin. It reads the whole file.
  uint64_t fingerprint() const;
  /// The place of the first token outside [low, high); -1 where there is none. It reads the whole file.
  int64_t findOutside(int64_t low, int64_t high) const;

private:
  /// In the order in which they are tried; false: it is another format.
  Expected<bool> takeMegatron();
  Expected<bool> takeArray();
  Expected<bool> takeLlmC();
  Status takeRaw(const RawTokens &raw, std::vector<std::string> &notes);
  Status chooseBits(const RawTokens &raw, std::vector<std::string> &notes);
  Status takeDocuments(const std::byte *starts, int64_t count, int64_t unit);
  Status wrong(const std::string &what) const;
  template <typename Visit> void visitBlocks(const Visit &visit) const;
  void releaseAfter(int64_t bytes) const;

  std::string name;
  MappedFile file, index; ///< of tokens; of where documents begin
  DType type = DType::U16;
  const std::byte *tokens = nullptr; ///< not aligned
  int64_t count = 0;
  const std::byte *documentStarts = nullptr; ///< 64-bit integers, not aligned; null: nothing is known
  int64_t documentCount = 0;
  int64_t unit = 1; ///< of document starts, in tokens or their bytes
  std::unique_ptr<std::atomic<int64_t>> touched = std::make_unique<std::atomic<int64_t>>(0); ///< bytes, since pages were given back
};

} // namespace hpc::text
