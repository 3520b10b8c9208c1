// A mapped file that is shortened under its reader.
#include "runtime/base/File.h"
#include "test/unit/runtime/TemporaryFolder.h"
#include "tools/ShortenedFiles.h"

#include <gtest/gtest.h>

using namespace hpc;

/// The tools end with an error that names the file, not with a signal.
TEST(ShortenedFiles, AreAnErrorThatNamesTheFile) {
  TemporaryFolder folder;
  std::string path = folder.write("weights.bin", std::string(1 << 16, 'x'));
  EXPECT_EXIT(
      {
        reportShortenedFiles("hpc-run");
        Expected<MappedFile> file = MappedFile::open(path);
        if (!file.ok() || ::truncate(path.c_str(), 100) != 0)
          std::exit(7);
        std::exit(file->data()[1 << 15] == std::byte('x') ? 8 : 9);
      },
      testing::ExitedWithCode(1), "^hpc-run: error\\[io\\]: '.*weights.bin': was shortened while it was being read");
}

/// A signal that no file causes is not dressed up as an error of the user's.
TEST(ShortenedFiles, OtherBusErrorsStaySignals) {
  EXPECT_EXIT(
      {
        reportShortenedFiles("hpc-run");
        ::raise(SIGBUS);
        ::raise(SIGBUS);
      },
      testing::KilledBySignal(SIGBUS), "");
}
