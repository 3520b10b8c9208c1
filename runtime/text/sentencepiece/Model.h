// A model of SentencePiece behind an interface of plain types: the library is in a plugin, libhpc_sentencepiece.so, since it brings a protobuf of its own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hpc::text {

class SentencePieceModel {
public:
  virtual ~SentencePieceModel() = default;

  /// Appends the ids of `text`. Returns an error of the library, "" for none; threads may call both at once.
  virtual std::string encode(std::string_view text, std::vector<int32_t> &ids) const = 0;
  /// The text of ids below size(), without control tokens.
  virtual std::string decode(const std::vector<int32_t> &ids, std::string &text) const = 0;

  virtual int32_t size() const = 0;
  virtual std::string pieceOf(int32_t id) const = 0;
  /// -1: no such piece.
  virtual int32_t idOf(const std::string &piece) const = 0;
  /// Whether the token stands for no text: <s>, </s>, <pad>.
  virtual bool isControl(int32_t id) const = 0;
  /// The tokens that end a text and fill it up; -1: none.
  virtual int32_t end() const = 0;
  virtual int32_t pad() const = 0;
};

/// The plugin's one function: of the bytes of a model file; null with an error.
using OpenSentencePiece = SentencePieceModel *(std::string_view content, std::string &error);
constexpr const char *openSentencePieceName = "hpcOpenSentencePiece";

} // namespace hpc::text
