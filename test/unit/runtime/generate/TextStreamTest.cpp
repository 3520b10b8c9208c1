// Ids become text as they come, on GPT-2's kind of tokenizer: a byte each, and a few longer tokens.
#include "runtime/generate/TextStream.h"

#include <gtest/gtest.h>

using namespace hpc;
using namespace hpc::generate;

namespace {

/// Id = byte; 256: "ab"; 257: a space and "stop". Others name no token.
class Bytes : public text::Tokenizer {
public:
  Status encode(std::string_view, std::vector<int32_t> &, Memory &) const override { return Status::success(); }
  Expected<std::string> decode(const std::vector<int32_t> &ids) const override {
    std::string text;
    for (int32_t id : ids) {
      if (id < 0 || id >= size())
        return Status::error(ErrorKind::Usage, "no token");
      text += id < 256 ? std::string(1, char(id)) : id == 256 ? "ab" : " stop";
    }
    return text;
  }
  int64_t size() const override { return 258; }
  bool mayCut() const override { return false; }
  std::optional<int32_t> idOf(const std::string &) const override { return std::nullopt; }
};

std::string add(TextStream &stream, int64_t id) {
  Expected<std::string> text = stream.add(id);
  EXPECT_TRUE(text.ok());
  return text.ok() ? *text : "";
}

} // namespace

// A terminal would show halves of a character.
TEST(TextStream, CharactersComeWhole) {
  const Bytes tokenizer;
  TextStream stream(tokenizer, {'a', 'b'}, {});
  EXPECT_EQ(add(stream, 'x'), "x");
  EXPECT_EQ(add(stream, 0xE2), "");
  EXPECT_EQ(add(stream, 0x82), "");
  EXPECT_EQ(add(stream, 0xAC), "\u20AC");
  EXPECT_EQ(add(stream, 256), "ab");
  EXPECT_EQ(add(stream, 0xF0), "");
  EXPECT_EQ(add(stream, 'y'), "\uFFFDy"); // no character: what came of it is replaced
  EXPECT_EQ(add(stream, 0xC3), "");
  EXPECT_EQ(*stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.text(), "x\u20ACab\uFFFDy\uFFFD");
}

// The beginning of a stop would be printed before it is known to be one, or an answer would end at half of one.
TEST(TextStream, TextEndsBeforeTheFirstStop) {
  const Bytes tokenizer;
  TextStream stream(tokenizer, {}, {"aba\n", "b!"});
  EXPECT_EQ(add(stream, 'c'), "c");
  EXPECT_EQ(add(stream, 256), "");
  EXPECT_EQ(add(stream, 'a'), "");
  EXPECT_EQ(add(stream, 'c'), "abac");
  EXPECT_FALSE(stream.isStopped());
  EXPECT_EQ(add(stream, 256), "");
  EXPECT_EQ(add(stream, '!'), "a");
  EXPECT_TRUE(stream.isStopped());
  EXPECT_EQ(add(stream, 'd'), "");
  EXPECT_EQ(*stream.finish(), "");
  EXPECT_EQ(stream.text(), "cabaca");
}

// What looked like the beginning of a stop would be lost at the end.
TEST(TextStream, HalfAStopIsText) {
  const Bytes tokenizer;
  TextStream stream(tokenizer, {}, {" stop."});
  EXPECT_EQ(add(stream, 257), "");
  EXPECT_EQ(*stream.finish(), " stop");
}

// One id beyond the tokenizer, of a vocabulary that is filled up, would end the answer.
TEST(TextStream, IdsWithoutATokenHaveNoText) {
  const Bytes tokenizer;
  TextStream stream(tokenizer, {}, {});
  EXPECT_EQ(add(stream, 'a'), "a");
  EXPECT_EQ(add(stream, 300), "");
  EXPECT_EQ(add(stream, 'b'), "b");
  EXPECT_EQ(stream.unknownIds(), 1);
}

// Text would differ from that of Hugging Face's tokenizers where bytes are no UTF-8.
TEST(TextStream, ReplacesMaximalSubparts) {
  EXPECT_EQ(validUtf8("\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64"), "\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd"); // Table 3-8
  EXPECT_EQ(validUtf8("\xC0\xAF\xE0\x80\xBF"), "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(validUtf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD"); // a surrogate
  EXPECT_EQ(validUtf8("gr\u00FC\u00DF \U0001F600"), "gr\u00FC\u00DF \U0001F600");
}
