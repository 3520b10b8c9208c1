#include "runtime/base/MessageText.h"
#include "runtime/base/Status.h"

#include <gmock/gmock.h>

namespace hpc {
namespace {

// Names of a stranger's file would otherwise fill the terminal, or drive it.
TEST(MessageText, QuotesNamesInPart) {
  EXPECT_EQ(messageText("node 'fc1' reads 'w'"), "node 'fc1' reads 'w'");
  std::string name(10000000, 'x'), text = messageText("node '" + name + "' (Relu): input 1 is missing");
  EXPECT_EQ(text, "node '" + std::string(150, 'x') + "..." + std::string(50, 'x') + "' (Relu): input 1 is missing");
  EXPECT_EQ(messageText(std::string("'") + std::string(200, 'y') + "'"), "'" + std::string(200, 'y') + "'");
  EXPECT_EQ(messageText("op:" + std::string(5000, 'z')).size(), 1003u);
  std::string list;
  for (int i = 0; i < 100000; ++i)
    list += "'a', ";
  EXPECT_LE(messageText(list).size(), 20003u);
}

// A possessive is no quote: what stands between two of them is ours and stays whole.
TEST(MessageText, KnowsApostrophes) {
  std::string ours = "the model's list, " + std::string(60, 'a') + " " + std::string(60, 'b') + " " + std::string(60, 'c') + " " +
                     std::string(60, 'd') + " of the ranks' weights";
  EXPECT_EQ(messageText(ours), ours);
  EXPECT_EQ(messageText("'it's " + std::string(300, 'x') + "'").size(), 205u);
}

// No sign is a command; lines are ours outside of quotes alone; a character of several bytes is not cut.
TEST(MessageText, ShowsWhatCannotBeSeen) {
  EXPECT_EQ(messageText("a\n\tb 'c\nd\x1b[31m\x7f'"), "a\n\tb 'c\\nd\\x1b[31m\\x7f'");
  std::string name;
  for (int i = 0; i < 100; ++i)
    name += "\xe2\x82\xac"; // three bytes
  EXPECT_THAT(messageText("'a" + name + "'"), testing::HasSubstr("\xe2\x82\xac...\xe2\x82\xac"));
}

// Messages keep names whole for those who look at them; only what is printed is cut.
TEST(MessageText, IsWhatAStatusPrints) {
  Status status = Status::error(ErrorKind::Model, "'" + std::string(300, 'x') + "'");
  EXPECT_EQ(status.message().size(), 302u);
  EXPECT_EQ(status.text(), "error[model]: '" + std::string(150, 'x') + "..." + std::string(50, 'x') + "'");
}

} // namespace
} // namespace hpc
