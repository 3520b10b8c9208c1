// The files that tokenizers come in.
#pragma once

#include "runtime/text/Tokenizer.h"

namespace hpc::text {

/// Of tokenizer.json; `end` is the content of the token that ends a document, "" where only custom says it.
Expected<std::unique_ptr<Tokenizer>> readTokenizerJson(const std::string &path, const std::string &end);

/// GPT-2's two files: ids by token, and merges a line each. `special`: contents of tokens that are found first.
Expected<std::unique_ptr<Tokenizer>> readVocabularyAndMerges(const std::string &vocabulary, const std::string &merges,
                                                             const std::vector<std::string> &special, const std::string &end,
                                                             bool addsPrefixSpace);

} // namespace hpc::text
