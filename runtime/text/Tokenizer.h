// Text to token ids and back, exactly as Hugging Face's tokenizers has it, without what a model's post-processor would add
// (encode(text, add_special_tokens=False)).
#pragma once

#include "runtime/base/Status.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpc::text {

class Tokenizer {
public:
  /// A folder, in which tokenizer.json comes before vocab.json and merges.txt (also encoder.json and vocab.bpe), and these before
  /// SentencePiece's tokenizer.model or spiece.model; or one of these files, or any .model. tokenizer.json must be byte-level BPE; one of
  /// another kind beside a model of SentencePiece stands for that.
  /// Errors: Io; Model (a damaged file); Unsupported, with the name of a part that is not known.
  static Expected<std::unique_ptr<Tokenizer>> open(const std::string &path);
  virtual ~Tokenizer() = default;

  /// What encode() keeps from one text to the next; one for each thread.
  class Memory {
  public:
    virtual ~Memory() = default;
  };
  virtual std::unique_ptr<Memory> makeMemory() const { return std::make_unique<Memory>(); }

  /// Appends the ids of `text`, valid UTF-8. Threads may call it at once, each with its own memory.
  virtual Status encode(std::string_view text, std::vector<int32_t> &ids, Memory &memory) const = 0;
  /// The bytes of all tokens, special ones included. Error (Usage): an id that names no token.
  virtual Expected<std::string> decode(const std::vector<int32_t> &ids) const = 0;

  /// One more than the largest id.
  virtual int64_t size() const = 0;
  /// The token that the tokenizer puts before a text that a model is to continue, where it does: add_bos_token of tokenizer_config.json, or the
  /// post-processor of tokenizer.json. encode() does not.
  std::optional<int32_t> begin() const { return beginToken; }
  /// The token that ends a document, where there is one.
  std::optional<int32_t> end() const { return endToken; }
  /// The token that fills rows up, where the tokenizer's configuration names one.
  std::optional<int32_t> pad() const { return padToken; }
  /// See DocumentOptions::mayCut.
  virtual bool mayCut() const = 0;
  /// Tells two tokenizers apart that make other ids: a hash of their files.
  uint64_t identity() const { return hash; }

protected:
  /// The id of a special token by its content.
  virtual std::optional<int32_t> idOf(const std::string &content) const = 0;

  std::optional<int32_t> beginToken, endToken, padToken;
  uint64_t hash = 0;
};

} // namespace hpc::text
