#include "runtime/text/BytePairTokenizer.h"

#include <algorithm>
#include <cstdlib>
#include <utf8proc.h>

namespace hpc::text {

const char *const gpt2Pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

bool isCutBetweenWords(const std::string &pattern) {
  // LLaMA 3 and GPT-4's cl100k; Qwen 2 (digits one by one).
  const std::string before = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)", after = R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  return pattern == gpt2Pattern || pattern == before + R"(\p{N}{1,3})" + after || pattern == before + R"(\p{N})" + after;
}

namespace {
struct CacheMemory : Tokenizer::Memory {
  BytePairs::Cache cache;
};
} // namespace

static Status appendNormal(std::string_view text, NormalForm form, std::string &to) {
  int options = UTF8PROC_STABLE | (form == NormalForm::C || form == NormalForm::KC ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE);
  if (form == NormalForm::KC || form == NormalForm::KD)
    options |= UTF8PROC_COMPAT;
  utf8proc_uint8_t *result = nullptr;
  const utf8proc_ssize_t length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t *>(text.data()), utf8proc_ssize_t(text.size()), &result,
                                               utf8proc_option_t(options));
  if (length < 0)
    return Status::error(ErrorKind::Io, std::string("a text has no normal form: ") + utf8proc_errmsg(length) + "; mend its UTF-8");
  to.append(reinterpret_cast<const char *>(result), size_t(length));
  std::free(result);
  return Status::success();
}

/// `text` in each of `forms`, one after the other.
static Expected<std::string> normalize(std::string text, const std::vector<NormalForm> &forms) {
  // utf8proc 2.8 drops U+11A7 after a Hangul syllable. It composes with nothing, so texts may be cut around it.
  constexpr std::string_view dropped = "\u11A7";
  for (NormalForm form : forms) {
    std::string normal;
    for (std::string_view rest = text; !rest.empty();) {
      const size_t end = std::min(rest.find(dropped), rest.size());
      HPC_RETURN_IF_ERROR(appendNormal(rest.substr(0, end), form, normal));
      const size_t skipped = std::min(dropped.size(), rest.size() - end);
      normal += rest.substr(end, skipped);
      rest.remove_prefix(end + skipped);
    }
    text = std::move(normal);
  }
  return text;
}

BytePairTokenizer::BytePairTokenizer(BytePairParts given, std::optional<int32_t> end, uint64_t identity) : parts(std::move(given)) {
  endToken = end;
  hash = identity;
  tokens = parts.pairs.tokens();
  std::vector<AddedToken> kinds[2];
  for (const AddedToken &token : parts.added) {
    tokens.resize(std::max(tokens.size(), size_t(token.id) + 1));
    tokens[size_t(token.id)] = token.content;
    kinds[token.isNormalized].push_back(token);
    if (Expected<std::string> normal = normalize(token.content, parts.forms); token.isNormalized && normal.ok())
      kinds[1].back().content = *normal;
  }
  for (auto &[id, content] : parts.unreachable)
    tokens[size_t(id)] = content;
  raw = AddedTokens(std::move(kinds[0]));
  normalized = AddedTokens(std::move(kinds[1]));
  parts.mayCut = parts.mayCut && !parts.addsPrefixSpace; // a part may begin with a line's end, which would get a space
  for (const AddedToken &token : parts.added) // it might be cut in two
    parts.mayCut = parts.mayCut && token.content.find_first_of(" \n") == std::string::npos && !token.stripsLeft && !token.stripsRight;
}

std::unique_ptr<Tokenizer::Memory> BytePairTokenizer::makeMemory() const { return std::make_unique<CacheMemory>(); }

static bool isAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return uint8_t(c) < 0x80; });
}

Status BytePairTokenizer::encodeWords(std::string_view text, size_t split, std::vector<int32_t> &ids, BytePairs::Cache &cache) const {
  if (split == parts.splits.size()) {
    parts.pairs.encode(text, ids, cache);
    return Status::success();
  }
  if (split + 1 == parts.splits.size())
    return parts.splits[split].split(text, [&](std::string_view piece) { parts.pairs.encode(piece, ids, cache); });
  Status status;
  HPC_RETURN_IF_ERROR(parts.splits[split].split(text, [&](std::string_view piece) {
    if (status.ok())
      status = encodeWords(piece, split + 1, ids, cache);
  }));
  return status;
}

Status BytePairTokenizer::encode(std::string_view text, std::vector<int32_t> &ids, Memory &memory) const {
  BytePairs::Cache &cache = static_cast<CacheMemory &>(memory).cache;
  Status status;
  auto words = [&](std::string_view piece) {
    if (!status.ok())
      return;
    if (!parts.addsPrefixSpace || piece[0] == ' ')
      status = encodeWords(piece, 0, ids, cache);
    else
      status = encodeWords(" " + std::string(piece), 0, ids, cache);
  };
  auto token = [&](int32_t id) { ids.push_back(id); };
  raw.split(
      text,
      [&](std::string_view piece) {
        if (parts.forms.empty() || isAscii(piece)) // which every normal form leaves as it is
          return normalized.split(piece, words, token);
        Expected<std::string> normal = normalize(std::string(piece), parts.forms);
        if (normal.ok())
          normalized.split(*normal, words, token);
        else if (status.ok())
          status = normal.status();
      },
      token);
  return status;
}

std::optional<int32_t> BytePairTokenizer::idOf(const std::string &content) const {
  for (const AddedToken &token : parts.added)
    if (token.content == content)
      return token.id;
  const auto found = std::find(tokens.begin(), tokens.end(), content);
  return found == tokens.end() ? std::nullopt : std::optional(int32_t(found - tokens.begin()));
}

Expected<std::string> BytePairTokenizer::decode(const std::vector<int32_t> &ids) const {
  std::string text;
  for (int32_t id : ids) {
    if (id < 0 || size_t(id) >= tokens.size() || tokens[size_t(id)].empty())
      return Status::error(ErrorKind::Usage, "token " + std::to_string(id) + " is none of the tokenizer's " + std::to_string(tokens.size()));
    text += tokens[size_t(id)];
  }
  return text;
}

} // namespace hpc::text
