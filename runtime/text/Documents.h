// The documents of a text file, in order and in bounded memory: of JSON lines the string under a key of each line,
// of other text the whole file.
#pragma once

#include "runtime/text/ByteSource.h"

#include <string_view>
#include <vector>

namespace hpc::text {

enum class TextKind { None, Whole, Lines };
/// Text has no structure of its own, so a name says what it is; .gz or .zst may follow. JSON lines are .jsonl, .ndjson or .json; a whole text is
/// .txt. A file of another name is text where its beginning is, and JSON lines where that begins with a brace. A file that begins as one of
/// another kind is no text, whatever its name.
/// Errors (Io): a file that cannot be read.
Expected<TextKind> textKindOf(const std::string &path);

struct Document {
  std::string text;    ///< valid UTF-8
  bool isLast = true;  ///< the document ends here; else the next one continues it
};

struct DocumentOptions {
  std::string textKey = "text"; ///< of JSON lines
  bool skipBadLines = false;    ///< JSON lines that cannot be used are counted and left out, instead of an error
  /// Whether a tokenizer gives the same tokens for a text and for its parts, where parts end with a letter and begin with
  /// white space. If not, a document must be shorter than the longest line.
  bool mayCut = true;
};

/// No JSON line, and no part of a text, is longer than 64 MiB.
constexpr int64_t longestDocument = int64_t(64) << 20;

class Documents {
public:
  /// `path` is text. Errors (Io).
  static Expected<Documents> open(const std::string &path, const DocumentOptions &options);

  /// Documents, or parts of one, of about `bytes` bytes; none at the end. Errors (Io) name file and line.
  Expected<std::vector<Document>> next(int64_t bytes);
  int64_t badLines() const { return skipped; }

private:
  explicit Documents(ByteSource source) : source(std::move(source)) {}
  Expected<bool> fill(int64_t bytes);
  Status takeLine(std::string_view line, std::vector<Document> &documents, int64_t &taken);
  Status takeLines(int64_t bytes, std::vector<Document> &documents);
  Status takePart(int64_t bytes, std::vector<Document> &documents);

  ByteSource source;
  std::string path;
  DocumentOptions options;
  bool isLines = false, isAtEnd = false, hasBegun = false;
  std::string buffer;  ///< read, and from `start` on not yet taken
  size_t start = 0;
  int64_t line = 0;    ///< of JSON lines: taken so far
  int64_t place = 0;   ///< of other texts: bytes taken so far
  int64_t skipped = 0;
};

} // namespace hpc::text
