// Documents of files that are written here: lines, parts of a text, packed files, and what is wrong with them.
#include "runtime/text/Documents.h"
#include "runtime/base/File.h"
#include "test/unit/runtime/TemporaryFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

using namespace hpc;
using namespace hpc::text;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

class DocumentsTest : public testing::Test {
protected:
  std::string write(const std::string &name, const std::string &content) {
    EXPECT_TRUE(writeFile(folder / name, content).ok());
    return folder / name;
  }
  /// The texts of all documents, parts joined; `bytes` are asked for at a time.
  Expected<std::vector<std::string>> all(const std::string &path, DocumentOptions options = {}, int64_t bytes = 1 << 20) {
    Expected<Documents> documents = Documents::open(path, options);
    HPC_RETURN_IF_ERROR(documents.status());
    std::vector<std::string> texts;
    bool continues = false;
    parts = 0;
    while (true) {
      Expected<std::vector<Document>> some = documents->next(bytes);
      HPC_RETURN_IF_ERROR(some.status());
      if (some->empty())
        break;
      for (const Document &document : *some) {
        if (!continues)
          texts.emplace_back();
        texts.back() += document.text;
        continues = !document.isLast;
        ++parts;
      }
    }
    EXPECT_FALSE(continues);
    badLines = documents->badLines();
    return texts;
  }
  std::string errorOf(const std::string &path, DocumentOptions options = {}) {
    Expected<std::vector<std::string>> texts = all(path, options);
    return texts.ok() ? "" : texts.status().message();
  }
  TemporaryFolder folder;
  int64_t parts = 0, badLines = 0;
};

std::string gzip(const std::string &text) {
  z_stream stream = {};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, text.size()), 0);
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(text.data()));
  stream.avail_in = uInt(text.size());
  stream.next_out = reinterpret_cast<Bytef *>(packed.data());
  stream.avail_out = uInt(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string zstd(const std::string &text) {
  std::string packed(ZSTD_compressBound(text.size()), 0);
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

const std::string lines = "{\"text\": \"one\\n\\u00e9\"}\r\n\n  \n{\"id\": 7, \"text\": \"\"}\n{\"text\": \"three\"}";

TEST_F(DocumentsTest, LinesOfJson) {
  const std::vector<std::string> texts = {"one\n\xC3\xA9", "", "three"};
  EXPECT_EQ(*all(write("a.jsonl", lines)), texts);
  EXPECT_EQ(*all(folder / "a.jsonl", {}, 1), texts);
  EXPECT_EQ(*all(write("b.jsonl", lines + "\n")), texts);
  EXPECT_EQ(*all(write("c.jsonl.gz", gzip(lines))), texts);
  EXPECT_EQ(*all(write("d.jsonl.gz", gzip(lines.substr(0, 20)) + gzip(lines.substr(20)))), texts); // two members
  EXPECT_EQ(*all(write("e.jsonl.zst", zstd(lines.substr(0, 9)) + zstd(lines.substr(9)))), texts);  // two frames
  EXPECT_THAT(*all(write("f.jsonl", "{\"text\": \"a\", \"body\": \"b\"}"), {"body"}), ElementsAre("b"));
  EXPECT_TRUE(all(write("g.jsonl", "\n\n"))->empty());
}

TEST_F(DocumentsTest, PartsOfAText) {
  std::string text;
  for (int i = 0; i < 200; ++i)
    text += i % 3 ? "Wort \xC3\xA9t\xC3\xA9 12 4.\n\n" : "\xE4\xBD\xA0\xE5\xA5\xBD x, ";
  for (int64_t bytes : {20, 64, 1000, 1 << 20}) {
    EXPECT_THAT(*all(write("a.txt", text), {}, bytes), ElementsAre(text));
    EXPECT_EQ(parts > 1, bytes < int64_t(text.size())) << bytes;
  }
  // Each part ends with a letter, and the next begins with white space.
  Documents documents = std::move(*Documents::open(folder / "a.txt", {}));
  std::string before;
  for (std::vector<Document> some = *documents.next(50); !some.empty(); some = *documents.next(50)) {
    if (!before.empty()) {
      EXPECT_TRUE(some[0].text[0] == ' ' || some[0].text[0] == '\n');
      EXPECT_TRUE(std::isalpha(uint8_t(before.back())) || uint8_t(before.back()) >= 0x80) << before;
    }
    before = some.back().text;
  }
  DocumentOptions whole;
  whole.mayCut = false;
  EXPECT_THAT(*all(folder / "a.txt", whole, 20), ElementsAre(text));
  EXPECT_EQ(parts, 1);
  EXPECT_THAT(*all(write("a.txt.zst", zstd(text)), {}, 64), ElementsAre(text));
  EXPECT_TRUE(all(write("empty.txt", ""))->empty());
}

TEST_F(DocumentsTest, BadLinesAreNamed) {
  DocumentOptions skip;
  skip.skipBadLines = true;
  for (auto [bad, why] : {std::pair<std::string, const char *>("{\"text\": ", "is no JSON"), {"[1]", "is no JSON object"},
                          {"{\"body\": \"x\", \"n\": 1}", "has no key 'text'; its keys are 'body', 'n' (--text-key)"},
                          {"{\"text\": 5}", "has no string under 'text'"}, {"{\"text\": \"\xC3(\"}", "is no UTF-8"},
                          {"{\"text\": \"\\ud800\"}", "is no JSON"}}) {
    const std::string path = write("a.jsonl", "{\"text\": \"a\"}\n\n" + bad + "\n{\"text\": \"b\"}\n");
    EXPECT_THAT(errorOf(path), AllOf(HasSubstr("a.jsonl', line 3 " + std::string(why)), HasSubstr("--skip-bad-lines"))) << bad;
    EXPECT_THAT(*all(path, skip), ElementsAre("a", "b")) << bad;
    EXPECT_EQ(badLines, 1);
  }
}

TEST_F(DocumentsTest, TooLong) {
  const std::string longer(size_t(longestDocument) + 10, 'x');
  const std::string path = write("a.jsonl", "{\"text\": \"a\"}\n{\"text\": \"" + longer + "\"}\n{\"text\": \"b\"}\n");
  EXPECT_THAT(errorOf(path), HasSubstr("line 2 is longer than 64 MiB"));
  DocumentOptions skip;
  skip.skipBadLines = true;
  EXPECT_THAT(*all(path, skip), ElementsAre("a", "b"));
  EXPECT_EQ(badLines, 1);
  EXPECT_THAT(errorOf(write("a.txt", longer)), HasSubstr("has 64 MiB from byte 0 on without a word's end"));
}

TEST_F(DocumentsTest, DamagedFiles) {
  const std::string text(100000, 'y');
  EXPECT_THAT(errorOf(write("a.txt", "abc \xFF def")), HasSubstr("a.txt' is no UTF-8 at byte 4; convert it"));
  EXPECT_THAT(errorOf(write("a.txt.gz", gzip(text).substr(0, 60))), HasSubstr("a.txt.gz' cannot be unpacked: it ends too early"));
  EXPECT_THAT(errorOf(write("a.txt.zst", zstd(text).substr(0, 14))), HasSubstr("a.txt.zst' cannot be unpacked: it ends too early"));
  std::string wrong = zstd("some words that do not repeat: 0123456789");
  wrong[5] ^= 0x55;
  EXPECT_THAT(errorOf(write("b.txt.zst", wrong)), HasSubstr("cannot be unpacked"));
  EXPECT_THAT(errorOf(folder.path), HasSubstr("no regular file"));
  EXPECT_THAT(errorOf(folder / "none.txt"), HasSubstr("No such file"));
}

TEST_F(DocumentsTest, KindsByNameAndContent) {
  auto kind = [&](const std::string &name, const std::string &content) { return *textKindOf(write(name, content)); };
  EXPECT_EQ(kind("a.jsonl", "no JSON"), TextKind::Lines); // its lines are told
  EXPECT_EQ(kind("a.txt", "{\"text\": 1}"), TextKind::Whole);
  EXPECT_EQ(kind("a.json.zst", zstd(lines)), TextKind::Lines);
  EXPECT_EQ(kind("a", lines), TextKind::Lines);
  EXPECT_EQ(kind("b.jsonl", "{\"meta\":{\"lang\":\"en\"},\"text\":\"x\"}"), TextKind::Lines);
  EXPECT_EQ(kind("b", "{\"meta\":{\"lang\":\"en\"},\"text\":\"x\"}"), TextKind::Lines);
  EXPECT_EQ(kind("b.txt", std::string("\2\0\0\0\0\0\0\0{}", 10)), TextKind::None);
  EXPECT_EQ(kind("a.md", "# Words"), TextKind::Whole);
  EXPECT_EQ(kind("packed", gzip("Words")), TextKind::Whole);
  EXPECT_EQ(kind("a.bin", "two letters a token"), TextKind::None);
  EXPECT_EQ(kind("a.txt", "\x93NUMPY\x01"), TextKind::None);
  EXPECT_EQ(kind("a", std::string("\1\0\2\0", 4)), TextKind::None);
  EXPECT_EQ(kind("empty.jsonl", ""), TextKind::Lines);
}

} // namespace
