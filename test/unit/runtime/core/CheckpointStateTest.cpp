// state.json comes back as it was written, and no byte of it can change unseen.
#include "runtime/core/CheckpointState.h"
#include "runtime/base/Hash.h"
#include "test/unit/runtime/TemporaryFolder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace hpc;
using testing::HasSubstr;

static CheckpointState someState() {
  CheckpointState state;
  state.metadata = {{"steps", "500"}, {"seed", "9007199254740991"}, {"loss_scale", "0.5"}, {"run.lr", "1e-05"}, {"run.zeros", "007"}, {"run.zero", "0"}, {"run.text", "a \"b\"\n"},
                    {"run.minus", "-3"}, {"run.large", "18446744073709551616"}, {"run.none", ""}};
  state.layout = {{"tp", 2}, {"processes", 4}};
  state.files = {{"model.safetensors", {{"", 8, hashBytes("12345678", 8)}, {"w", 4, hashBytes("abcd", 4)}, {"b", 0, hashBytes("", 0)}}}};
  return state;
}

TEST(CheckpointState, ComesBack) {
  TemporaryFolder folder;
  folder.write("state.json", checkpointStateText(someState()));
  Expected<CheckpointState> read = readCheckpointState(folder.path);
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_EQ(read->metadata, someState().metadata);
  EXPECT_EQ(read->layout, someState().layout);
  ASSERT_EQ(read->files.size(), 1u);
  EXPECT_EQ(read->files[0].parts[1].tensor, "w");
  EXPECT_EQ(read->files[0].parts[1].hash, hashBytes("abcd", 4));
}

TEST(CheckpointState, EveryChangedByteIsFound) {
  TemporaryFolder folder;
  const std::string text = checkpointStateText(someState());
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = char(changed[i] ^ 1);
    folder.write("state.json", changed);
    EXPECT_FALSE(readCheckpointState(folder.path).ok()) << i;
    folder.write("state.json", text.substr(0, i));
    EXPECT_FALSE(readCheckpointState(folder.path).ok()) << i;
  }
}

TEST(CheckpointState, EveryChangedByteOfAFileIsFound) {
  TemporaryFolder folder;
  const CheckpointFile file = someState().files[0];
  auto check = [&](const std::string &content) {
    folder.write(file.path, content);
    return checkCheckpointFile(folder.path, file);
  };
  EXPECT_TRUE(check("12345678abcd").ok());
  EXPECT_THAT(check("12345678abce").message(), HasSubstr("is damaged: bytes are not those that were saved in tensor 'w'"));
  EXPECT_THAT(check("02345678abcd").message(), HasSubstr("is damaged: bytes are not those that were saved"));
  EXPECT_THAT(check("12345678abc").message(), HasSubstr("is cut off: it has 11 of 12 bytes, and ends in tensor 'w'"));
  EXPECT_THAT(check("12345678abcde").message(), HasSubstr("has 1 bytes more"));
  EXPECT_FALSE(check("").ok());
}
