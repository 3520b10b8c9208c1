// Byte-level tokens are written in files as characters, one for each byte: printable bytes as themselves, the others as U+0100
// and up (GPT-2's encoder.py).
#include "runtime/text/TokenizerFiles.h"

#include "runtime/base/File.h"
#include "runtime/base/Hash.h"
#include "runtime/text/BytePairTokenizer.h"
#include "runtime/text/SentencePieceTokenizer.h"

#include <algorithm>
#include <array>
#include <simdjson.h>
#include <unordered_map>
#include <utf8proc.h>

namespace hpc::text {

namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

/// Ids are small: what a file names above is damage.
constexpr int64_t mostTokens = int64_t(1) << 24;

Status damaged(const std::string &path, const std::string &what) {
  return Status::error(ErrorKind::Model, "'" + path + "': " + what + "; get the file again");
}
Status unknown(const std::string &path, const std::string &what) {
  return Status::error(ErrorKind::Unsupported, "'" + path + "': " + what + " is not supported; byte-level BPE (GPT-2, RoBERTa, LLaMA 3, Qwen 2) and models of SentencePiece are");
}

struct Json {
  simdjson::dom::parser parser;
  element root;
  uint64_t hash = 0;
  Status read(const std::string &path) {
    Expected<MappedFile> file = MappedFile::open(path);
    HPC_RETURN_IF_ERROR(file.status());
    hash = hashBytes(file->data(), file->size());
    if (simdjson::error_code error = parser.parse(file->text().data(), size_t(file->size()), true).get(root))
      return damaged(path, std::string("it is no JSON (") + simdjson::error_message(error) + ")");
    return Status::success();
  }
};

/// The element under `key`, where there is one that is not null.
std::optional<element> at(const element &parent, const char *key) {
  element value;
  if (parent[key].get(value) || value.is_null())
    return std::nullopt;
  return value;
}
std::string textAt(const element &parent, const char *key) {
  std::string_view text;
  const std::optional<element> value = at(parent, key);
  return value && !value->get(text) ? std::string(text) : "";
}
bool flagAt(const element &parent, const char *key, bool otherwise) {
  bool flag = otherwise;
  const std::optional<element> value = at(parent, key);
  return value && !value->get(flag) ? flag : otherwise;
}

/// The byte that a code point stands for, -1 where none.
int byteOf(int32_t point) {
  static const std::array<int, 0x180> bytes = [] {
    std::array<int, 0x180> table;
    table.fill(-1);
    int next = 0x100;
    for (int byte = 0; byte < 256; ++byte)
      table[size_t((byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD) ? byte : next++)] = byte;
    return table;
  }();
  return point >= 0 && point < int32_t(bytes.size()) ? bytes[size_t(point)] : -1;
}

std::optional<std::string> bytesOf(std::string_view characters) {
  std::string bytes;
  while (!characters.empty()) {
    utf8proc_int32_t point = 0;
    const utf8proc_ssize_t length =
        utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t *>(characters.data()), utf8proc_ssize_t(characters.size()), &point);
    const int byte = length > 0 ? byteOf(point) : -1;
    if (byte < 0)
      return std::nullopt;
    bytes += char(byte);
    characters.remove_prefix(size_t(length));
  }
  return bytes;
}

/// A vocabulary as files have it, and the pairs that are merged.
struct Vocabulary {
  std::string path;
  std::unordered_map<std::string, int32_t> ids; ///< by the characters of the file
  std::vector<std::pair<int32_t, int32_t>> merges;

  Status add(std::string_view token, int64_t id) {
    if (id < 0 || id >= mostTokens)
      return damaged(path, "token '" + std::string(token) + "' has id " + std::to_string(id));
    ids.emplace(token, int32_t(id));
    return Status::success();
  }
  Status add(const element &tokens) {
    object all;
    if (tokens.get(all))
      return damaged(path, "the vocabulary is no JSON object");
    ids.reserve(all.size());
    for (simdjson::dom::key_value_pair token : all) {
      int64_t id = 0;
      if (token.value.get(id))
        return damaged(path, "token '" + std::string(token.key) + "' has no whole number as its id");
      HPC_RETURN_IF_ERROR(add(token.key, id));
    }
    return Status::success();
  }
  Status merge(std::string_view left, std::string_view right, const std::string &place) {
    const auto a = ids.find(std::string(left)), b = ids.find(std::string(right));
    if (a == ids.end() || b == ids.end())
      return damaged(place, "merge " + std::to_string(merges.size()) + " joins '" + std::string(left) + "' and '" + std::string(right) +
                                "', of which the vocabulary lacks one");
    merges.emplace_back(a->second, b->second);
    return Status::success();
  }
  /// "left right"
  Status merge(std::string_view line, const std::string &place) {
    const size_t space = line.find(' ');
    if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos)
      return damaged(place, "merge " + std::to_string(merges.size()) + " '" + std::string(line) + "' is not two tokens and a space");
    return merge(line.substr(0, space), line.substr(space + 1), place);
  }
  Status finish(BytePairParts &parts, bool takesWholePieces) const {
    std::vector<std::string> tokens;
    for (const auto &[characters, id] : ids) {
      tokens.resize(std::max(tokens.size(), size_t(id) + 1));
      if (std::optional<std::string> bytes = bytesOf(characters))
        tokens[size_t(id)] = *bytes;
      else
        parts.unreachable.emplace_back(id, characters);
    }
    Expected<BytePairs> pairs = BytePairs::create(std::move(tokens), merges, takesWholePieces);
    if (!pairs.ok())
      return pairs.status().at("'" + path + "'");
    parts.pairs = std::move(*pairs);
    return Status::success();
  }
};

/// tokenizer.json, part by part.
class Reader {
public:
  Reader(const std::string &path, const element &root) : path(path), root(root) {}

  Status read() {
    if (const std::optional<element> normalizer = at(root, "normalizer"))
      HPC_RETURN_IF_ERROR(readNormalizer(*normalizer));
    const std::optional<element> preTokenizer = at(root, "pre_tokenizer");
    if (!preTokenizer)
      return unknown(path, "a tokenizer without pre_tokenizer");
    HPC_RETURN_IF_ERROR(readPreTokenizer(*preTokenizer));
    if (!isByteLevel)
      return unknown(path, "a pre_tokenizer without ByteLevel");
    const std::optional<element> model = at(root, "model");
    if (!model)
      return damaged(path, "it has no model");
    HPC_RETURN_IF_ERROR(readModel(*model));
    return readAddedTokens();
  }
  BytePairParts parts;
  Vocabulary vocabulary;

private:
  Status readNormalizer(const element &normalizer) {
    const std::string type = textAt(normalizer, "type");
    const std::pair<const char *, NormalForm> forms[] = {{"NFC", NormalForm::C}, {"NFD", NormalForm::D}, {"NFKC", NormalForm::KC}, {"NFKD", NormalForm::KD}};
    for (auto [name, form] : forms)
      if (type == name)
        return parts.forms.push_back(form), Status::success();
    array list;
    if (type != "Sequence" || normalizer["normalizers"].get(list))
      return unknown(path, "the normalizer " + type);
    for (element each : list)
      HPC_RETURN_IF_ERROR(readNormalizer(each));
    return Status::success();
  }

  Status addSplit(const std::string &pattern) {
    Expected<SplitPattern> split = SplitPattern::create(pattern);
    if (!split.ok())
      return split.status().at("'" + path + "'");
    parts.mayCut = isCutBetweenWords(pattern) && (parts.splits.empty() || parts.mayCut);
    parts.splits.push_back(std::move(*split));
    return Status::success();
  }

  Status readPreTokenizer(const element &step) {
    const std::string type = textAt(step, "type");
    if (isByteLevel)
      return unknown(path, "the pre_tokenizer " + type + " after ByteLevel");
    array list;
    if (type == "Sequence" && !step["pretokenizers"].get(list)) {
      for (element each : list)
        HPC_RETURN_IF_ERROR(readPreTokenizer(each));
      return Status::success();
    }
    if (type == "ByteLevel") {
      isByteLevel = true;
      parts.addsPrefixSpace = flagAt(step, "add_prefix_space", true);
      if (parts.addsPrefixSpace && !parts.splits.empty())
        return unknown(path, "add_prefix_space after a Split");
      return flagAt(step, "use_regex", true) ? addSplit(gpt2Pattern) : Status::success();
    }
    if (type != "Split")
      return unknown(path, "the pre_tokenizer " + type);
    if (textAt(step, "behavior") != "Isolated" || flagAt(step, "invert", false))
      return unknown(path, "a Split that is not Isolated, or inverted,");
    const std::optional<element> pattern = at(step, "pattern");
    std::string text = pattern ? textAt(*pattern, "Regex") : "";
    if (text.empty() && pattern && !textAt(*pattern, "String").empty())
      text = "\\Q" + textAt(*pattern, "String") + "\\E";
    return text.empty() ? damaged(path, "a Split has no pattern") : addSplit(text);
  }

  Status readModel(const element &model) {
    const std::string type = textAt(model, "type");
    if (!type.empty() && type != "BPE")
      return unknown(path, "the model " + type);
    for (const char *key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"})
      if (const std::optional<element> value = at(model, key); value && !(value->is_string() && textAt(model, key).empty()) &&
                                                               !(value->is_double() && double(*value) == 0))
        return unknown(path, std::string("the model's ") + key);
    if (flagAt(model, "byte_fallback", false))
      return unknown(path, "byte_fallback");
    vocabulary.path = path;
    const std::optional<element> tokens = at(model, "vocab"), merges = at(model, "merges");
    array list;
    if (!tokens || !merges || merges->get(list))
      return damaged(path, "the model has no vocab and merges");
    HPC_RETURN_IF_ERROR(vocabulary.add(*tokens));
    for (element each : list) {
      array two;
      std::string_view line, left, right;
      if (!each.get(line))
        HPC_RETURN_IF_ERROR(vocabulary.merge(line, path));
      else if (!each.get(two) && two.size() == 2 && !two.at(0).get(left) && !two.at(1).get(right))
        HPC_RETURN_IF_ERROR(vocabulary.merge(left, right, path));
      else
        return damaged(path, "merge " + std::to_string(vocabulary.merges.size()) + " is no pair of tokens");
    }
    return vocabulary.finish(parts, flagAt(model, "ignore_merges", false));
  }

  Status readAddedTokens() {
    array list;
    if (const std::optional<element> added = at(root, "added_tokens"); !added || added->get(list))
      return Status::success();
    for (element each : list) {
      AddedToken token;
      int64_t id = -1;
      token.content = textAt(each, "content");
      if (each["id"].get(id) || id < 0 || id >= mostTokens || token.content.empty())
        return damaged(path, "an added token has no content or no id");
      if (flagAt(each, "single_word", false))
        return unknown(path, "single_word of the added token '" + token.content + "'");
      token.id = int32_t(id);
      token.stripsLeft = flagAt(each, "lstrip", false), token.stripsRight = flagAt(each, "rstrip", false);
      token.isNormalized = flagAt(each, "normalized", !flagAt(each, "special", false));
      parts.added.push_back(std::move(token));
    }
    return Status::success();
  }

  const std::string &path;
  const element &root;
  bool isByteLevel = false;
};

/// The id of the token that ends a document: of the name given, else of the first usual one that is there.
Expected<std::optional<int32_t>> endOf(const Vocabulary &vocabulary, const std::vector<AddedToken> &added, const std::string &given) {
  auto idOf = [&](const std::string &content) -> std::optional<int32_t> {
    for (const AddedToken &token : added)
      if (token.content == content)
        return token.id;
    const auto found = vocabulary.ids.find(content);
    return found == vocabulary.ids.end() ? std::nullopt : std::optional<int32_t>(found->second);
  };
  if (!given.empty()) {
    const std::optional<int32_t> id = idOf(given);
    if (!id)
      return damaged(vocabulary.path, "it has no token '" + given + "', which the tokenizer's configuration names as the end of a text");
    return id;
  }
  for (const char *usual : {"<|endoftext|>", "<|end_of_text|>", "</s>"})
    if (const std::optional<int32_t> id = idOf(usual))
      return id;
  return std::optional<int32_t>();
}

} // namespace

Expected<std::unique_ptr<Tokenizer>> readTokenizerJson(const std::string &path, const std::string &end) {
  Json json;
  HPC_RETURN_IF_ERROR(json.read(path));
  Reader reader(path, json.root);
  HPC_RETURN_IF_ERROR(reader.read());
  Expected<std::optional<int32_t>> id = endOf(reader.vocabulary, reader.parts.added, end);
  HPC_RETURN_IF_ERROR(id.status());
  return std::unique_ptr<Tokenizer>(new BytePairTokenizer(std::move(reader.parts), *id, json.hash));
}

Expected<std::unique_ptr<Tokenizer>> readVocabularyAndMerges(const std::string &vocabularyPath, const std::string &mergesPath,
                                                             const std::vector<std::string> &special, const std::string &end,
                                                             bool addsPrefixSpace) {
  Json json;
  HPC_RETURN_IF_ERROR(json.read(vocabularyPath));
  Vocabulary vocabulary;
  vocabulary.path = vocabularyPath;
  HPC_RETURN_IF_ERROR(vocabulary.add(json.root));
  Expected<MappedFile> file = MappedFile::open(mergesPath);
  HPC_RETURN_IF_ERROR(file.status());
  std::string_view rest = file->text();
  for (bool isFirst = true; !rest.empty(); isFirst = false) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!line.empty() && line.back() == '\r')
      line.remove_suffix(1);
    constexpr std::string_view suffix = "</w>"; // "n</w>" as CLIP and the first GPT have it
    if (line.size() > suffix.size() && line.substr(line.size() - suffix.size()) == suffix && line[line.size() - suffix.size() - 1] != ' ')
      return unknown(mergesPath, "the end of words " + std::string(suffix));
    if (!line.empty() && !(isFirst && line.substr(0, 8) == "#version"))
      HPC_RETURN_IF_ERROR(vocabulary.merge(line, mergesPath));
  }
  BytePairParts parts;
  HPC_RETURN_IF_ERROR(vocabulary.finish(parts, false));
  Expected<SplitPattern> split = SplitPattern::create(gpt2Pattern);
  HPC_RETURN_IF_ERROR(split.status());
  parts.splits.push_back(std::move(*split));
  parts.mayCut = true;
  parts.addsPrefixSpace = addsPrefixSpace;
  for (const std::string &content : special)
    if (const auto found = vocabulary.ids.find(content); found != vocabulary.ids.end())
      parts.added.push_back({found->second, content});
  Expected<std::optional<int32_t>> id = endOf(vocabulary, parts.added, end);
  HPC_RETURN_IF_ERROR(id.status());
  const uint64_t hash = (json.hash * 31 + hashBytes(file->data(), file->size())) * 2 + addsPrefixSpace;
  return std::unique_ptr<Tokenizer>(new BytePairTokenizer(std::move(parts), *id, hash));
}

/// The contents of the special tokens that a JSON file of a tokenizer names, under all keys or `only` one; a token is a string or
/// an object with `content`.
static std::vector<std::string> specialTokens(const std::string &path, const char *only) {
  std::vector<std::string> contents;
  Json json;
  object all;
  if (!json.read(path).ok() || json.root.get(all))
    return contents;
  for (simdjson::dom::key_value_pair field : all) {
    std::string_view text;
    if (only && field.key != only)
      continue;
    if (!field.value.get(text))
      contents.emplace_back(text);
    else if (std::string content = textAt(field.value, "content"); !content.empty())
      contents.push_back(content);
  }
  return contents;
}

/// "" where the configuration in `folder` names none for this use, as "eos_token".
static std::string configuredToken(const std::string &folder, const char *use) {
  for (const char *file : {"tokenizer_config.json", "special_tokens_map.json"})
    for (const std::string &content : specialTokens(folder + "/" + file, use))
      return content;
  return "";
}

static bool isFileThere(const std::string &file) { return MappedFile::open(file).ok(); }

/// Tokens besides those of a model: {"<mask>": 32000} of added_tokens.json, {"32000": {"content": "<mask>", ...}} of tokenizer_config.json.
static Expected<std::vector<AddedToken>> addedTokens(const std::string &folder) {
  std::vector<AddedToken> tokens;
  auto add = [&](const std::string &file, AddedToken token, int64_t id) {
    token.id = int32_t(id);
    if (id < 0 || id >= mostTokens || token.content.empty())
      return damaged(file, "the added token '" + token.content + "' has id " + std::to_string(id));
    const auto known = std::find_if(tokens.begin(), tokens.end(), [&](const AddedToken &other) { return other.id == token.id; });
    if (known == tokens.end())
      tokens.push_back(std::move(token));
    return Status::success();
  };
  Json configuration, list;
  object all;
  std::string file = folder + "/tokenizer_config.json";
  if (isFileThere(file)) {
    HPC_RETURN_IF_ERROR(configuration.read(file));
    const std::optional<element> decoder = at(configuration.root, "added_tokens_decoder");
    if (decoder && !decoder->get(all))
      for (simdjson::dom::key_value_pair field : all) {
        const std::string key(field.key);
        const bool isNumber = !key.empty() && key.size() < 10 && key.find_first_not_of("0123456789") == std::string::npos;
        HPC_RETURN_IF_ERROR(add(file, {0, textAt(field.value, "content"), flagAt(field.value, "lstrip", false), flagAt(field.value, "rstrip", false)}, isNumber ? std::stoll(key) : -1));
      }
    if (flagAt(configuration.root, "do_lower_case", false))
      return unknown(file, "do_lower_case with a model of SentencePiece");
  }
  file = folder + "/added_tokens.json";
  if (isFileThere(file)) {
    HPC_RETURN_IF_ERROR(list.read(file));
    if (list.root.get(all))
      return damaged(file, "it is no JSON object");
    for (simdjson::dom::key_value_pair field : all) {
      int64_t id = -1;
      if (field.value.get(id))
        id = -1;
      HPC_RETURN_IF_ERROR(add(file, {0, std::string(field.key)}, id));
    }
  }
  return tokens;
}

/// A model, with what the files beside it say.
static Expected<std::unique_ptr<Tokenizer>> openSentencePiece(const std::string &path) {
  const std::string folder = folderOf(path);
  Expected<std::vector<AddedToken>> added = addedTokens(folder);
  HPC_RETURN_IF_ERROR(added.status());
  return readSentencePiece(path, configuredToken(folder, "eos_token"), configuredToken(folder, "pad_token"), std::move(*added));
}

static Expected<std::unique_ptr<Tokenizer>> openFiles(const std::string &path) {
  auto exists = isFileThere;
  const bool isFile = exists(path);
  const std::string folder = isFile ? folderOf(path) : path, end = configuredToken(folder, "eos_token");
  auto isNamed = [&](const char *name) {
    return isFile && path.size() >= std::string_view(name).size() && path.substr(path.size() - std::string_view(name).size()) == name;
  };
  // Its ids begin elsewhere than those of the model that it is for.
  for (const char *name : {"sentencepiece.bpe.model"})
    if (isNamed(name) || (!isFile && exists(folder + "/" + name)))
      return unknown(folder + "/" + name, "the numbering of XLM-RoBERTa");
  if (isNamed(".model"))
    return openSentencePiece(path);
  for (auto [vocabulary, merges] : {std::pair("vocab.json", "merges.txt"), {"encoder.json", "vocab.bpe"}}) {
    const std::string first = folder + "/" + vocabulary, second = folder + "/" + merges;
    if (isFile ? !isNamed(vocabulary) && !isNamed(merges) : exists(folder + "/tokenizer.json") || !exists(first))
      continue;
    std::vector<std::string> special = specialTokens(folder + "/special_tokens_map.json", nullptr);
    special.push_back("<|endoftext|>");
    std::sort(special.begin(), special.end());
    special.erase(std::unique(special.begin(), special.end()), special.end());
    Json configuration; // where there is one
    const bool addsPrefixSpace = configuration.read(folder + "/tokenizer_config.json").ok() && flagAt(configuration.root, "add_prefix_space", false);
    return readVocabularyAndMerges(first, second, special, end, addsPrefixSpace);
  }
  if (isFile)
    return readTokenizerJson(path, end);
  std::string model;
  for (const char *name : {"spiece.model", "tokenizer.model"})
    if (exists(folder + "/" + name))
      model = folder + "/" + name;
  if (exists(folder + "/tokenizer.json")) {
    Expected<std::unique_ptr<Tokenizer>> opened = readTokenizerJson(folder + "/tokenizer.json", end);
    // tokenizer.json spells out a model of SentencePiece that lies beside it.
    if (opened.ok() || model.empty() || opened.status().kind() != ErrorKind::Unsupported)
      return opened;
  }
  if (!model.empty())
    return openSentencePiece(model);
  return Status::error(ErrorKind::Usage, "'" + path + "' holds no tokenizer: neither tokenizer.json, nor vocab.json and merges.txt, nor tokenizer.model; "
                                         "name the folder that save_pretrained wrote, or one of these files");
}

/// The content of the token that the post-processor of tokenizer.json, one or several, puts first; "" for none.
static std::string templateBegin(const element &processor) {
  element first, token;
  array list;
  if (textAt(processor, "type") == "TemplateProcessing")
    return !processor["single"].at(0).get(first) && !first["SpecialToken"].get(token) ? textAt(token, "id") : "";
  std::string begin;
  if (!processor["processors"].get(list))
    for (element each : list)
      if (begin.empty())
        begin = templateBegin(each);
  return begin;
}

/// The content of the token before a text, where the configuration in `folder` adds one; "" for none.
static std::string beginOf(const std::string &folder) {
  Json configuration, tokenizer;
  if (configuration.read(folder + "/tokenizer_config.json").ok() && at(configuration.root, "add_bos_token"))
    return flagAt(configuration.root, "add_bos_token", false) ? configuredToken(folder, "bos_token") : "";
  if (!tokenizer.read(folder + "/tokenizer.json").ok())
    return "";
  const std::optional<element> processor = at(tokenizer.root, "post_processor");
  return processor ? templateBegin(*processor) : "";
}

Expected<std::unique_ptr<Tokenizer>> Tokenizer::open(const std::string &path) {
  Expected<std::unique_ptr<Tokenizer>> opened = openFiles(path);
  HPC_RETURN_IF_ERROR(opened.status());
  Tokenizer &tokenizer = **opened;
  std::vector<int32_t> ids;
  const std::string folder = isFileThere(path) ? folderOf(path) : path;
  if (const std::string begin = beginOf(folder); !begin.empty()) {
    tokenizer.beginToken = tokenizer.idOf(begin);
    if (!tokenizer.beginToken)
      return damaged(folder, "the tokenizer has no token '" + begin + "', which its configuration puts before a text");
  }
  if (const std::string pad = configuredToken(folder, "pad_token"); !pad.empty())
    HPC_RETURN_IF_ERROR(tokenizer.encode(pad, ids, *tokenizer.makeMemory()));
  if (!tokenizer.padToken && ids.size() == 1)
    tokenizer.padToken = ids[0];
  return opened;
}

} // namespace hpc::text
