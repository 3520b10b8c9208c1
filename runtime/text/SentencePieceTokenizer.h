// A tokenizer whose model is a file of SentencePiece (Unigram, BPE, words, characters), exactly as the library has it.
#pragma once

#include "runtime/text/AddedTokens.h"
#include "runtime/text/Tokenizer.h"
#include "runtime/text/sentencepiece/Model.h"

namespace hpc::text {

/// `end`, `pad`: contents of tokens as the tokenizer's configuration names them, "" for the model's own. `added`: tokens besides those of the model, which are found in the
/// text first; text between them is encoded piece by piece. Errors: Io; Model (no such file, or a damaged one); Usage (no plugin beside the program).
Expected<std::unique_ptr<Tokenizer>> readSentencePiece(const std::string &path, const std::string &end, const std::string &pad, std::vector<AddedToken> added);

class SentencePieceTokenizer : public Tokenizer {
public:
  SentencePieceTokenizer(std::unique_ptr<SentencePieceModel> model, const std::vector<AddedToken> &added);
  Status encode(std::string_view text, std::vector<int32_t> &ids, Memory &memory) const override;
  Expected<std::string> decode(const std::vector<int32_t> &ids) const override;
  int64_t size() const override { return largest + 1; }
  bool mayCut() const override { return false; } // a part would begin with a space of its own

  /// Error (Model): no token is called so.
  Status setTokens(const std::string &path, const std::string &end, const std::string &pad, uint64_t identity);

private:
  std::optional<int32_t> idOf(const std::string &content) const override;

  std::unique_ptr<SentencePieceModel> model;
  std::vector<AddedToken> list;
  AddedTokens added;
  int32_t largest = 0;
};

} // namespace hpc::text
