// Byte pairs by hand, and files that cannot be used. Whole vocabularies are compared with PyPI's tokenizers by tools/token-ids.test,
// which runs ByHand/TokenFileTest.
#include "runtime/base/File.h"
#include "runtime/base/Npy.h"
#include "runtime/text/TokenFile.h"
#include "test/unit/runtime/TemporaryFolder.h"

#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace hpc;
using namespace hpc::text;
using testing::HasSubstr;

namespace {

/// The character of byte `byte` in files, as UTF-8: printable ones themselves, the others U+0100 and up in their order.
std::string characterOf(int byte) {
  int point = 0x100;
  for (int each = 0; each <= byte; ++each) {
    const bool isPrintable = (each >= 33 && each <= 126) || (each >= 161 && each <= 172) || each >= 174;
    if (each == byte)
      point = isPrintable ? byte : point;
    else
      point += !isPrintable;
  }
  if (point < 0x80)
    return std::string(1, char(point));
  return {char(0xC0 | point >> 6), char(0x80 | (point & 63))};
}

std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (char c : text)
    result += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return result + "\"";
}

/// Ids 0..255 are the bytes, then come the `merged`, then <|endoftext|>.
std::string vocabulary(const std::vector<std::string> &merged, int first = 0) {
  std::string json = "{";
  for (int byte = first; byte < 256; ++byte)
    json += quoted(characterOf(byte)) + ": " + std::to_string(byte) + ", ";
  for (size_t i = 0; i < merged.size(); ++i)
    json += quoted(merged[i]) + ": " + std::to_string(256 + i) + ", ";
  return json + "\"<|endoftext|>\": " + std::to_string(256 + merged.size()) + "}";
}

class TokenizerTest : public testing::Test {
protected:
  void write(const std::string &name, const std::string &content) { ASSERT_TRUE(writeFile(folder / name, content).ok()); }
  std::vector<int32_t> encode(const std::string &text) {
    std::vector<int32_t> ids;
    auto memory = tokenizer->makeMemory();
    EXPECT_TRUE(tokenizer->encode(text, ids, *memory).ok());
    std::vector<int32_t> again;
    EXPECT_TRUE(tokenizer->encode(text, again, *memory).ok()); // now from its memory
    EXPECT_EQ(ids, again);
    Expected<std::string> decoded = tokenizer->decode(ids);
    EXPECT_TRUE(decoded.ok() && *decoded == text);
    return ids;
  }
  std::string open(const std::string &path) {
    Expected<std::unique_ptr<Tokenizer>> opened = Tokenizer::open(path);
    if (!opened.ok())
      return opened.status().message();
    tokenizer = std::move(*opened);
    return "";
  }
  TemporaryFolder folder;
  std::unique_ptr<Tokenizer> tokenizer;
};

TEST_F(TokenizerTest, MergesByRankLeftmostFirst) {
  write("vocab.json", vocabulary({"ab", "bc", "abc", "\xC4\xA0" "ab", "aa"}));
  write("merges.txt", "#version: 0.2\nb c\na b\na bc\n\xC4\xA0 ab\na a\n");
  ASSERT_EQ(open(folder.path), "");
  EXPECT_EQ(*tokenizer->end(), 261);
  EXPECT_EQ(tokenizer->size(), 262);
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(encode("abc"), (Ids{258}));            // b c comes before a b
  EXPECT_EQ(encode("ab ab"), (Ids{256, 259}));     // the second piece begins with its space
  EXPECT_EQ(encode("aaa"), (Ids{260, 'a'}));       // the left pair
  EXPECT_EQ(encode("aaaa"), (Ids{260, 260}));
  EXPECT_EQ(encode("a b"), (Ids{'a', ' ', 'b'}));  // no merge across pieces
  EXPECT_EQ(encode("<|endoftext|>ab"), (Ids{261, 256}));
  EXPECT_EQ(encode("\xC3\xA9"), (Ids{0xC3, 0xA9}));
  EXPECT_EQ(encode(""), Ids());
  std::string longer; // beyond the memory for short pieces
  for (int i = 0; i < 50; ++i)
    longer += "abc";
  EXPECT_EQ(encode(longer), Ids(50, 258));
}

TEST_F(TokenizerTest, SettingsOfTwoFiles) {
  write("vocab.json", vocabulary({"ab", "\xC4\xA0" "ab", "b</w>"}));
  write("merges.txt", "a b\n\xC4\xA0 ab\n");
  write("tokenizer_config.json", "{\"add_prefix_space\": true, \"eos_token\": {\"content\": \"ab\"}}");
  ASSERT_EQ(open(folder.path), "");
  EXPECT_EQ(*tokenizer->end(), 256);
  std::vector<int32_t> ids;
  auto memory = tokenizer->makeMemory();
  ASSERT_TRUE(tokenizer->encode("ab ab", ids, *memory).ok());
  EXPECT_EQ(ids, (std::vector<int32_t>{257, 257})); // both with a space
  write("tokenizer_config.json", "{\"eos_token\": \"none\"}");
  EXPECT_THAT(open(folder.path), HasSubstr("it has no token 'none'"));
  write("merges.txt", "a b\na b</w>\n");
  EXPECT_THAT(open(folder.path), HasSubstr("the end of words </w> is not supported"));
}

// A model that has always seen a token before its texts would continue a prompt without it.
TEST_F(TokenizerTest, TokenBeforeAText) {
  const std::string files = "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false}, \"added_tokens\": [{\"id\": 300, \"content\": \"<s>\", \"special\": true}], "
                            "\"model\": {\"type\": \"BPE\", \"vocab\": " + vocabulary({"ab"}) + ", \"merges\": [[\"a\", \"b\"]]}}";
  const std::string begins = "{\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"<s>\", \"type_id\": 0}}, {\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}]}";
  auto begin = [&](const std::string &processor, const std::string &configuration) {
    write("tokenizer.json", "{\"post_processor\": " + processor + ", " + files);
    write("tokenizer_config.json", configuration);
    EXPECT_EQ(open(folder.path), "");
    return tokenizer->begin();
  };
  EXPECT_EQ(begin("null", "{}"), std::nullopt);
  EXPECT_EQ(begin("{\"type\": \"ByteLevel\"}", "{\"bos_token\": \"<s>\"}"), std::nullopt);
  EXPECT_EQ(begin(begins, "{}"), 300);
  EXPECT_EQ(begin("{\"type\": \"Sequence\", \"processors\": [{\"type\": \"ByteLevel\"}, " + begins + "]}", "{}"), 300);
  EXPECT_EQ(begin(begins, "{\"add_bos_token\": false, \"bos_token\": \"<s>\"}"), std::nullopt);
  EXPECT_EQ(begin("null", "{\"add_bos_token\": true, \"bos_token\": {\"content\": \"ab\"}}"), 256);
  EXPECT_EQ(encode("ab"), std::vector<int32_t>{256}); // encode() adds none
  write("tokenizer_config.json", "{\"add_bos_token\": true, \"bos_token\": \"<none>\"}");
  EXPECT_THAT(open(folder.path), HasSubstr("the tokenizer has no token '<none>', which its configuration puts before a text"));
}

TEST_F(TokenizerTest, FilesThatCannotBeUsed) {
  auto json = [&](const std::string &preTokenizer, const std::string &model, const std::string &more = "") {
    write("tokenizer.json", "{" + more + "\"pre_tokenizer\": " + preTokenizer + ", \"model\": {\"type\": \"BPE\", " + model + "}}");
    return open(folder / "tokenizer.json");
  };
  const std::string level = "{\"type\": \"ByteLevel\", \"add_prefix_space\": false}", good = "\"vocab\": " + vocabulary({"ab"}) + ", \"merges\": [[\"a\", \"b\"]]";
  EXPECT_EQ(json(level, good), "");
  EXPECT_EQ(encode("ab"), std::vector<int32_t>{256});
  EXPECT_THAT(json("{\"type\": \"Whitespace\"}", good), HasSubstr("the pre_tokenizer Whitespace is not supported"));
  EXPECT_THAT(json("null", good), HasSubstr("without pre_tokenizer is not supported"));
  EXPECT_THAT(json(level, good, "\"normalizer\": {\"type\": \"Lowercase\"}, "), HasSubstr("the normalizer Lowercase is not supported"));
  EXPECT_THAT(json(level, "\"byte_fallback\": true, " + good), HasSubstr("byte_fallback is not supported"));
  EXPECT_THAT(json(level, "\"end_of_word_suffix\": \"</w>\", " + good), HasSubstr("end_of_word_suffix is not supported"));
  EXPECT_THAT(json(level, "\"vocab\": " + vocabulary({}, 1) + ", \"merges\": []"), HasSubstr("no token for byte 0"));
  EXPECT_THAT(json(level, "\"vocab\": " + vocabulary({}) + ", \"merges\": [\"a b\"]"), HasSubstr("merge 0 makes a token that the vocabulary does not have"));
  EXPECT_THAT(json(level, "\"vocab\": " + vocabulary({}) + ", \"merges\": [\"a bb\"]"), HasSubstr("merge 0 joins 'a' and 'bb', of which the vocabulary lacks one"));
  EXPECT_THAT(json(level, "\"vocab\": {\"a\": -4}, \"merges\": []"), HasSubstr("token 'a' has id -4"));
  EXPECT_THAT(json("{\"type\": \"Split\", \"behavior\": \"Isolated\", \"pattern\": {\"Regex\": \"(\"}}", good), HasSubstr("cannot be compiled"));
  write("tokenizer.json", "{\"model\": {\"type\": \"WordPiece\"}, \"pre_tokenizer\": " + level + "}");
  EXPECT_THAT(open(folder.path), HasSubstr("the model WordPiece is not supported"));
  write("tokenizer.json", "{");
  EXPECT_THAT(open(folder.path), HasSubstr("it is no JSON"));
  write("tokenizer.json", "{\"model\": {\"type\": \"Unigram\"}, \"pre_tokenizer\": " + level + "}");
  EXPECT_THAT(open(folder.path), HasSubstr("the model Unigram is not supported"));
  EXPECT_THAT(open(folder / "nothing"), HasSubstr("holds no tokenizer"));
  write("tokenizer.model", "no model");
  EXPECT_THAT(open(folder.path), HasSubstr("tokenizer.model': it is no model of SentencePiece, or is damaged"));
  write("other.model", "");
  EXPECT_THAT(open(folder / "other.model"), HasSubstr("other.model': it is no model of SentencePiece, or is damaged"));
  write("sentencepiece.bpe.model", "");
  EXPECT_THAT(open(folder.path), HasSubstr("the numbering of XLM-RoBERTa is not supported"));
}

TEST_F(TokenizerTest, TokensAreKept) {
  write("vocab.json", vocabulary({"ab"}));
  write("merges.txt", "a b\n");
  ASSERT_EQ(open(folder.path), "");
  write("a.jsonl", "{\"text\": \"ab\"}\n{\"text\": \"\"}\n{\"text\": \"c\"}\n");
  TokenFile made = *tokenize(folder / "a.jsonl", *tokenizer, {}, "", 3);
  EXPECT_TRUE(made.isNew);
  EXPECT_EQ(made.documents, 3);
  const Array tokens = *readNpy(made.path);
  EXPECT_EQ(tokens.dtype, DType::U16);
  EXPECT_EQ(std::vector<uint16_t>(tokens.as<uint16_t>(), tokens.as<uint16_t>() + tokens.elements()), (std::vector<uint16_t>{256, 257, 257, 'c', 257}));
  TokenFile found = *tokenize(folder / "a.jsonl", *tokenizer, {}, "", 1);
  EXPECT_FALSE(found.isNew);
  EXPECT_EQ(found.path, made.path);
  EXPECT_EQ(found.tokens, 5);
  // Another text, another tokenizer: another file.
  write("a.jsonl", "{\"text\": \"ba\"}\n");
  EXPECT_NE(tokenize(folder / "a.jsonl", *tokenizer, {}, "", 1)->path, made.path);
  write("merges.txt", "\n");
  ASSERT_EQ(open(folder.path), "");
  write("a.jsonl", "{\"text\": \"ab\"}\n{\"text\": \"\"}\n{\"text\": \"c\"}\n");
  EXPECT_NE(tokenize(folder / "a.jsonl", *tokenizer, {}, "", 1)->path, made.path);
  write("empty.txt", "");
  EXPECT_THAT(tokenize(folder / "empty.txt", *tokenizer, {}, "", 1).status().message(), HasSubstr("has no text"));
  EXPECT_FALSE(tokenize(folder / "a.jsonl", *tokenizer, {}, folder / "none", 1).ok());
}

TEST_F(TokenizerTest, PartsHaveTheTokensOfTheWhole) {
  write("vocab.json", vocabulary({"ab", "\xC4\xA0" "ab"}));
  write("merges.txt", "a b\n\xC4\xA0 ab\n");
  std::string text;
  while (text.size() < (size_t(9) << 20)) // more than two parts
    text += "ab ab\nab, 12\n\n  ab\tab.\n";
  write("a.txt", text);
  for (const char *prefix : {"false", "true"}) {
    write("tokenizer_config.json", std::string("{\"add_prefix_space\": ") + prefix + "}");
    ASSERT_EQ(open(folder.path), "");
    std::vector<int32_t> whole;
    auto memory = tokenizer->makeMemory();
    ASSERT_TRUE(tokenizer->encode(text, whole, *memory).ok());
    whole.push_back(*tokenizer->end());
    const Array tokens = *readNpy(tokenize(folder / "a.txt", *tokenizer, {}, "", 2)->path);
    ASSERT_EQ(tokens.elements(), int64_t(whole.size())) << prefix;
    EXPECT_TRUE(std::equal(whole.begin(), whole.end(), tokens.as<uint16_t>())) << prefix;
  }
}

/// HPC_TOKENIZER, HPC_TEXT and HPC_TOKENS (a folder): prints the file of tokens and the tokens for ends and padding, writes the text of the tokens to decoded.txt, and with
/// HPC_PLAIN checks that it is the text again.
TEST(TokenFileTest, OfEnvironment) {
  const char *tokenizer = std::getenv("HPC_TOKENIZER"), *path = std::getenv("HPC_TEXT"), *to = std::getenv("HPC_TOKENS");
  if (!tokenizer || !path || !to)
    GTEST_SKIP() << "by hand, and by tools/token-ids.test";
  auto opened = Tokenizer::open(tokenizer);
  ASSERT_TRUE(opened.ok()) << opened.status().text();
  Expected<TokenFile> tokens = tokenize(path, **opened, {}, to, 2);
  ASSERT_TRUE(tokens.ok()) << tokens.status().text();
  const Array array = *readNpy(tokens->path);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i + 1 < array.elements(); ++i) // but for the end token
    ids.push_back(array.dtype == DType::U16 ? array.as<uint16_t>()[i] : array.as<int32_t>()[i]);
  const bool isPlain = std::getenv("HPC_PLAIN") != nullptr; // nothing is normalized or added
  const Expected<std::string> decoded = (*opened)->decode(ids);
  ASSERT_TRUE(decoded.ok()) << decoded.status().text();
  EXPECT_TRUE(!isPlain || *decoded == MappedFile::open(path)->text());
  ASSERT_TRUE(writeFile(std::string(to) + "/decoded.txt", *decoded).ok());
  std::printf("tokens %s\nspecial %d %d %d\n", tokens->path.c_str(), (*opened)->end().value_or(-1), (*opened)->pad().value_or(-1), int((*opened)->size()));
}

} // namespace
