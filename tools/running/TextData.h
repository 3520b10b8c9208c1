// Text in place of tokens: the flags about it, and the file of tokens that stands for a text file.
#pragma once

#include "runtime/plan/Plan.h"
#include "runtime/text/TokenFile.h"
#include "runtime/train/Batches.h"
#include "tools/flags/Arguments.h"

namespace hpc {

struct TextFlags {
  std::string tokenizer, tokenCache;
  text::DocumentOptions documents;
  std::string given; ///< one of them that was given, "" where none
};
TextFlags readTextFlags(const Arguments &arguments);

class TextData {
public:
  explicit TextData(const TextFlags &flags) : flags(flags) {}

  /// `path`, or where it is a text file (text::isTextName) the path of its tokens for `plan`, which are made where they are not there yet.
  /// Errors: a text without --tokenizer; a vocabulary that is larger than a table that `plan` looks ids up in.
  Expected<std::string> tokensOf(const std::string &path, const plan::Plan &plan, std::vector<std::string> &notes);
  /// After all files are named: flags about text, and none is one.
  Status checkUsed() const;

private:
  const TextFlags &flags;
  std::unique_ptr<text::Tokenizer> tokenizer;
  bool isUsed = false;
};

} // namespace hpc
