// The prompts of a call: texts of the command line or of JSON lines, which a tokenizer makes ids, or ids of JSON lines.
#pragma once

#include "runtime/text/Tokenizer.h"
#include "tools/flags/Arguments.h"

namespace hpc {

struct GivenPrompt {
  std::string place; ///< for messages: "--prompt", "'prompts.jsonl', line 3"
  std::string text;
  std::vector<int64_t> ids;
};

/// Of --prompt, --prompts or --ids. Errors: none of them (Usage), several; a line that is no prompt (Io); an empty prompt (Usage).
Expected<std::vector<GivenPrompt>> readPrompts(const Arguments &arguments);

/// Fills in the ids. Errors (Usage): a text that has none.
Status encodePrompts(const text::Tokenizer &tokenizer, std::vector<GivenPrompt> &prompts);

} // namespace hpc
