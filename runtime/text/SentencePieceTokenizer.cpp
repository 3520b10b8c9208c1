// Added tokens are found first; the library encodes and decodes the text between them.
#include "runtime/text/SentencePieceTokenizer.h"

#include "runtime/base/File.h"
#include "runtime/base/Hash.h"
#include "runtime/base/Plugin.h"

#include <algorithm>

namespace hpc::text {

SentencePieceTokenizer::SentencePieceTokenizer(std::unique_ptr<SentencePieceModel> given, const std::vector<AddedToken> &tokens)
    : model(std::move(given)), list(tokens), added(tokens) {
  largest = model->size() - 1;
  for (const AddedToken &token : tokens)
    largest = std::max(largest, token.id);
}

std::optional<int32_t> SentencePieceTokenizer::idOf(const std::string &content) const {
  for (const AddedToken &token : list)
    if (token.content == content)
      return token.id;
  const int32_t id = model->idOf(content);
  return id < 0 ? std::nullopt : std::optional(id);
}

Status SentencePieceTokenizer::setTokens(const std::string &path, const std::string &end, const std::string &pad, uint64_t identity) {
  hash = identity;
  for (const AddedToken &token : list)
    hash = hash * 31 + hashBytes(token.content.data(), int64_t(token.content.size())) + uint64_t(token.id);
  auto own = [](int32_t id) { return id < 0 ? std::nullopt : std::optional(id); };
  endToken = end.empty() ? own(model->end()) : idOf(end);
  padToken = pad.empty() ? own(model->pad()) : idOf(pad);
  for (const auto &[name, token] : {std::pair(end, endToken), {pad, padToken}})
    if (!name.empty() && !token)
      return Status::error(ErrorKind::Model, "'" + path + "': it has no token '" + name + "', which the tokenizer's configuration names; get the files again");
  return Status::success();
}

Status SentencePieceTokenizer::encode(std::string_view text, std::vector<int32_t> &ids, Memory &) const {
  std::string error;
  added.split(
      text,
      [&](std::string_view piece) {
        if (error.empty())
          error = model->encode(piece, ids);
      },
      [&](int32_t id) { ids.push_back(id); });
  return error.empty() ? Status::success() : Status::error(ErrorKind::Io, "SentencePiece cannot encode a text: " + error);
}

Expected<std::string> SentencePieceTokenizer::decode(const std::vector<int32_t> &ids) const {
  std::string text, error;
  std::vector<int32_t> run; // of tokens of the model that stand for text
  auto flush = [&] {
    std::string part;
    if (!run.empty() && error.empty())
      error = model->decode(run, part);
    text += part;
    run.clear();
  };
  for (int32_t id : ids) {
    const auto token = std::find_if(list.begin(), list.end(), [&](const AddedToken &each) { return each.id == id; });
    if (token == list.end() && (id < 0 || id >= model->size()))
      return Status::error(ErrorKind::Usage, "token " + std::to_string(id) + " is none of the tokenizer's " + std::to_string(size()));
    if (token == list.end() && !model->isControl(id)) {
      run.push_back(id);
      continue;
    }
    flush();
    text += token == list.end() ? model->pieceOf(id) : token->content;
  }
  flush();
  if (!error.empty())
    return Status::error(ErrorKind::Io, "SentencePiece cannot decode ids: " + error);
  return text;
}

Expected<std::unique_ptr<Tokenizer>> readSentencePiece(const std::string &path, const std::string &end, const std::string &pad, std::vector<AddedToken> added) {
  Expected<MappedFile> file = MappedFile::open(path);
  HPC_RETURN_IF_ERROR(file.status());
  Expected<void *> open = openPlugin("libhpc_sentencepiece.so", openSentencePieceName, "the plugin for models of SentencePiece",
                                     "it is built with this program and has to stand beside it, and needs Debian's libsentencepiece0");
  HPC_RETURN_IF_ERROR(open.status());
  std::string error;
  std::unique_ptr<SentencePieceModel> model(reinterpret_cast<OpenSentencePiece *>(*open)(file->text(), error));
  if (!model)
    return Status::error(ErrorKind::Model, "'" + path + "': it is no model of SentencePiece, or is damaged (" + error + "); get the file again");
  // Tokens that the model has itself are found as the library finds them, or not at all.
  added.erase(std::remove_if(added.begin(), added.end(), [&](const AddedToken &token) { return token.id < model->size(); }), added.end());
  auto tokenizer = std::make_unique<SentencePieceTokenizer>(std::move(model), added);
  HPC_RETURN_IF_ERROR(tokenizer->setTokens(path, end, pad, hashBytes(file->data(), file->size())));
  return std::unique_ptr<Tokenizer>(std::move(tokenizer));
}

} // namespace hpc::text
