// The tokens of a text file, as an .npy file beside it, which is made once and found again by whoever has the same text, tokenizer
// and settings. A second one, .documents.npy, holds where documents begin.
#pragma once

#include "runtime/text/Documents.h"
#include "runtime/text/Tokenizer.h"

namespace hpc::text {

struct TokenFile {
  std::string path;       ///< of the .npy: one dim of u16, or of i32 where ids need it; documents end with the end token
  uint64_t identity = 0;  ///< a hash of the text, the tokenizer and the settings
  int64_t tokens = 0, documents = 0; ///< documents without tokens do not count
  int64_t badLines = 0;   ///< left out
  bool isNew = false;     ///< made by this call
};

/// `threads`: as many documents are tokenized at a time. `folder`: "" is that of the text. Memory: about 64 MiB for each thread,
/// whatever the size of the file. The files appear whole or not at all. Of processes on one machine that need them at once, one makes them and the
/// others wait for it; processes that do not see each other's lock do the work twice, and no harm.
/// Errors: of the text (Documents), the tokenizer, or a folder that cannot be written to.
Expected<TokenFile> tokenize(const std::string &path, const Tokenizer &tokenizer, DocumentOptions options, const std::string &folder,
                             int64_t threads);

} // namespace hpc::text
