#include "tools/running/TextData.h"

#include "runtime/base/Cores.h"
#include "runtime/base/CountText.h"

namespace hpc {

TextFlags readTextFlags(const Arguments &arguments) {
  TextFlags flags;
  flags.tokenizer = arguments.text("tokenizer");
  flags.tokenCache = arguments.text("token-cache");
  flags.documents.textKey = arguments.text("text-key");
  flags.documents.skipBadLines = arguments.has("skip-bad-lines");
  for (const char *flag : {"tokenizer", "text-key", "skip-bad-lines", "token-cache"})
    if (arguments.has(flag))
      flags.given = std::string("--") + flag;
  return flags;
}

static Status checkVocabulary(const text::Tokenizer &tokenizer, const std::string &path, const plan::Plan &plan) {
  for (const plan::Port &port : plan.inputs)
    for (const plan::Lookup &lookup : port.lookups)
      if (lookup.high < tokenizer.size())
        return Status::error(ErrorKind::Usage, "--tokenizer=" + path + " has " + countText(tokenizer.size(), "token") + ", and " + lookup.reader +
                                                   " takes ids to " + std::to_string(lookup.high - 1) + " from input '" + port.name +
                                                   "'; give the tokenizer of this model");
  return Status::success();
}

Expected<std::string> TextData::tokensOf(const std::string &path, const plan::Plan &plan, std::vector<std::string> &notes) {
  if (!text::isTextName(path))
    return path;
  isUsed = true;
  if (flags.tokenizer.empty())
    return Status::error(ErrorKind::Usage, "'" + path + "' is text; add --tokenizer=FOLDER, the tokenizer of the model, as save_pretrained writes it");
  if (!tokenizer) {
    Expected<std::unique_ptr<text::Tokenizer>> opened = text::Tokenizer::open(flags.tokenizer);
    if (!opened.ok())
      return opened.status().at("--tokenizer");
    tokenizer = std::move(*opened);
    if (!tokenizer->end())
      notes.push_back("note: --tokenizer=" + flags.tokenizer + " has no token that ends a document, so documents follow each other without one");
  }
  HPC_RETURN_IF_ERROR(checkVocabulary(*tokenizer, flags.tokenizer, plan));
  Expected<text::TokenFile> tokens = text::tokenize(path, *tokenizer, flags.documents, flags.tokenCache, availableCores());
  HPC_RETURN_IF_ERROR(tokens.status());
  if (tokens->isNew)
    notes.push_back("note: '" + path + "': " + countText(tokens->tokens, "token") + " of " + countText(tokens->documents, "document") + ", kept in '" +
                    tokens->path + "'" + (tokens->badLines ? "; " + countText(tokens->badLines, "bad line") + " left out" : ""));
  else if (flags.documents.skipBadLines)
    notes.push_back("note: '" + path + "': its tokens were kept in '" + tokens->path + "' without its bad lines");
  return tokens->path;
}

Status TextData::checkUsed() const {
  return flags.given.empty() || isUsed ? Status::success()
                                 : Status::error(ErrorKind::Usage, flags.given + " is about files of text (.txt, .jsonl), and no data is one; leave it out");
}

} // namespace hpc
