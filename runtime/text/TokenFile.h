// The tokens of a text file, as an .npy file beside it, which is made once and found again by whoever has the same text, tokenizer
// and settings.
#pragma once

#include "runtime/text/Documents.h"
#include "runtime/text/Tokenizer.h"

namespace hpc::text {

struct TokenFile {
  std::string path;       ///< of the .npy: one dim of u16, or of i32 where ids need it; documents end with the end token
  int64_t tokens = 0, documents = 0;
  int64_t badLines = 0;   ///< left out
  bool isNew = false;     ///< made by this call
};

/// `threads`: as many documents are tokenized at a time. `folder`: "" is that of the text. Memory: about 64 MiB for each thread,
/// whatever the size of the file. The file appears whole or not at all, so processes that make it at once do no harm.
/// Errors: of the text (Documents), the tokenizer, or a folder that cannot be written to.
Expected<TokenFile> tokenize(const std::string &path, const Tokenizer &tokenizer, DocumentOptions options, const std::string &folder,
                             int64_t threads);

} // namespace hpc::text
