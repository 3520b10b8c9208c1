// Byte-level BPE with the stages of tokenizer.json: added tokens, a Unicode normal form, splits, byte pairs.
#pragma once

#include "runtime/text/AddedTokens.h"
#include "runtime/text/BytePairs.h"
#include "runtime/text/SplitPattern.h"
#include "runtime/text/Tokenizer.h"

namespace hpc::text {

enum class NormalForm { None, C, D, KC, KD };

/// GPT-2's, which `ByteLevel` has where it uses one of its own.
extern const char *const gpt2Pattern;
/// Whether a text may be cut after a letter and before white space: known patterns alone.
bool isCutBetweenWords(const std::string &pattern);

struct BytePairParts {
  BytePairs pairs;
  std::vector<AddedToken> added;
  std::vector<std::pair<int32_t, std::string>> unreachable; ///< tokens that no bytes are written as; decoding alone meets them
  std::vector<NormalForm> forms;      ///< one after the other
  std::vector<SplitPattern> splits;   ///< each splits the pieces of the one before
  bool addsPrefixSpace = false;       ///< before a piece between added tokens that has none
  bool mayCut = false;
};

class BytePairTokenizer : public Tokenizer {
public:
  BytePairTokenizer(BytePairParts parts, std::optional<int32_t> end, uint64_t identity);
  std::unique_ptr<Memory> makeMemory() const override;
  Status encode(std::string_view text, std::vector<int32_t> &ids, Memory &memory) const override;
  Expected<std::string> decode(const std::vector<int32_t> &ids) const override;
  int64_t size() const override { return int64_t(tokens.size()); }
  bool mayCut() const override { return parts.mayCut; }

private:
  std::optional<int32_t> idOf(const std::string &content) const override;
  Status encodeWords(std::string_view text, size_t split, std::vector<int32_t> &ids, BytePairs::Cache &cache) const;

  BytePairParts parts;
  AddedTokens raw, normalized;
  std::vector<std::string> tokens; ///< by id, added ones too; "": none
};

} // namespace hpc::text
