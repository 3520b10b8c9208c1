// Files: what may be opened, what stays in its folder, and that a file appears whole or not at all.
#include "runtime/base/File.h"
#include "runtime/base/Hash.h"
#include "test/unit/runtime/TemporaryFolder.h"

#include <cstring>
#include <csignal>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace hpc;
using testing::HasSubstr;

TEST(File, MapsWhatIsThere) {
  TemporaryFolder folder;
  Expected<MappedFile> file = MappedFile::open(folder.write("a", "hello"));
  ASSERT_TRUE(file.ok()) << file.status().text();
  EXPECT_EQ(file->text(), "hello");
  Expected<MappedFile> empty = MappedFile::open(folder.write("b", ""));
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(empty->size(), 0);
}

TEST(File, RangesCannotOverflow) {
  TemporaryFolder folder;
  Expected<MappedFile> file = MappedFile::open(folder.write("a", "hello"));
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->range(0, 5, "x").ok());
  EXPECT_TRUE(file->range(5, 0, "x").ok());
  for (auto [offset, bytes] : {std::pair<int64_t, int64_t>{0, 6},
                               {5, 1},
                               {6, 0},
                               {-1, 1},
                               {1, -1},
                               {INT64_MAX, INT64_MAX},
                               {1, INT64_MAX},
                               {INT64_MIN, 0},
                               {0, INT64_MIN}})
    EXPECT_FALSE(file->range(offset, bytes, "x").ok()) << offset << " " << bytes;
  EXPECT_THAT(file->range(2, 9, "weight 'w'").status().message(), HasSubstr("weight 'w' needs bytes 2 to 11"));
}

TEST(File, OpensRegularFilesOnly) {
  TemporaryFolder folder;
  EXPECT_THAT(MappedFile::open(folder / "none").status().text(), HasSubstr("error[io]"));
  EXPECT_THAT(MappedFile::open(folder.path).status().message(), HasSubstr("not a regular file"));
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(MappedFile::open(folder / "pipe").status().message(), HasSubstr("not a regular file"));
  EXPECT_FALSE(MappedFile::open("/dev/zero").ok());
}

TEST(File, StaysBeneathItsFolder) {
  TemporaryFolder folder;
  std::filesystem::create_directories(folder / "model/sub");
  folder.write("secret", "s");
  folder.write("model/data", "d");
  folder.write("model/sub/data", "d");
  folder.write("model/twice", "d");
  ::symlink("data", (folder / "model/link").c_str());
  ::symlink("sub", (folder / "model/linked-folder").c_str());
  ::link((folder / "model/twice").c_str(), (folder / "model/other-name").c_str());
  std::string model = folder / "model";
  EXPECT_TRUE(MappedFile::openBeneath(model, "data").ok());
  EXPECT_TRUE(MappedFile::openBeneath(model, "sub/data").ok());
  EXPECT_TRUE(MappedFile::openBeneath(model, "sub/../data").ok());
  EXPECT_THAT(MappedFile::openBeneath(model, "../secret").status().message(), HasSubstr("leaves the folder"));
  EXPECT_THAT(MappedFile::openBeneath(model, "sub/../../secret").status().message(), HasSubstr("leaves the folder"));
  EXPECT_THAT(MappedFile::openBeneath(model, folder / "secret").status().message(), HasSubstr("leaves the folder"));
  EXPECT_THAT(MappedFile::openBeneath(model, "link").status().message(), HasSubstr("symbolic link"));
  EXPECT_THAT(MappedFile::openBeneath(model, "linked-folder/data").status().message(), HasSubstr("symbolic link"));
  EXPECT_THAT(MappedFile::openBeneath(model, "twice").status().message(), HasSubstr("hard links"));
  for (const char *name : {"data", "link", "linked-folder/data", "twice"})
    EXPECT_TRUE(MappedFile::openBeneath(model, name, /*followLinks=*/true).ok()) << name;
  EXPECT_THAT(MappedFile::openBeneath(model, "../secret", true).status().message(), HasSubstr("leaves the folder"));
  EXPECT_FALSE(MappedFile::openBeneath(model, "sub").ok());
  EXPECT_FALSE(MappedFile::openBeneath(model, "").ok());
  EXPECT_FALSE(MappedFile::openBeneath(model, std::string("data\0x", 6)).ok());
}

TEST(File, AppearsWholeOrNotAtAll) {
  TemporaryFolder folder;
  std::string path = folder.write("plan", "old");
  {
    Expected<AtomicFile> file = AtomicFile::create(path);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->write("new").ok());
    EXPECT_EQ(TemporaryFolder::read(path), "old");
  }
  EXPECT_EQ(TemporaryFolder::read(path), "old");
  EXPECT_EQ(folder.entries(), 1);
  ASSERT_TRUE(writeFile(path, "new").ok());
  EXPECT_EQ(TemporaryFolder::read(path), "new");
  EXPECT_EQ(folder.entries(), 1);
  EXPECT_FALSE(writeFile(folder / "no/such/folder", "x").ok());
  EXPECT_FALSE(writeFile(folder.path, "x").ok()); // a folder is in the way
  EXPECT_EQ(folder.entries(), 1);
}

// A process that ends without unwinding, as one that is killed does.
TEST(File, LeavesNothingWhereItIsKilled) {
  TemporaryFolder folder;
  int probe = open(folder.path.c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (probe < 0)
    GTEST_SKIP() << "this file system has no files without a name";
  close(probe);
  std::string path = folder.write("plan", "old");
  pid_t child = fork();
  if (child == 0) {
    Expected<AtomicFile> file = AtomicFile::create(path);
    bool good = file.ok() && file->write("new").ok();
    _exit(good ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(folder.entries(), 1);
  EXPECT_EQ(TemporaryFolder::read(path), "old");
}

// The process' mask decides who may read it, with a name from the start or not.
TEST(File, HasTheRightsOfTheMask) {
  TemporaryFolder folder;
  mode_t mask = umask(027);
  EXPECT_TRUE(writeFile(folder / "new", "x").ok());
  umask(mask);
  struct stat info;
  ASSERT_EQ(stat((folder / "new").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

// As root a rename would put a file where /dev/null was, for the whole machine. Shown on a pipe, which goes the same way.
TEST(File, NeverReplacesADeviceOrAPipe) {
  TemporaryFolder folder;
  std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  EXPECT_TRUE(writeFile(pipe, "through").ok());
  char text[16] = "";
  EXPECT_EQ(read(reader, text, sizeof(text)), 7);
  EXPECT_STREQ(text, "through");
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  close(reader);
  EXPECT_EQ(folder.entries(), 1);
}

// A link stays, and what it leads to is written: through several links, and where nothing is there yet.
TEST(File, WritesWhatALinkLeadsTo) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "store");
  folder.write("store/file", "old");
  ASSERT_EQ(symlink("store/file", (folder / "link").c_str()), 0);
  ASSERT_EQ(symlink("link", (folder / "second").c_str()), 0);
  ASSERT_EQ(symlink("store/new", (folder / "dangling").c_str()), 0);
  EXPECT_TRUE(writeFile(folder / "second", "new").ok());
  EXPECT_TRUE(writeFile(folder / "dangling", "first").ok());
  EXPECT_EQ(TemporaryFolder::read(folder / "store/file"), "new");
  EXPECT_EQ(TemporaryFolder::read(folder / "store/new"), "first");
  for (const char *name : {"link", "second", "dangling"})
    EXPECT_TRUE(std::filesystem::is_symlink(folder / name)) << name;
  ASSERT_EQ(symlink("round", (folder / "round").c_str()), 0);
  EXPECT_FALSE(writeFile(folder / "round", "x").ok());
}

// A process that is killed between the two names of its file leaves one, which the next writer takes away. Files of a living
// writer, and files that only look like one, stay.
TEST(File, RemovesWhatAKilledWriterLeft) {
  TemporaryFolder folder;
  const std::string path = folder.write("plan", "old");
  folder.write("plan.123-0.tmp", "half");
  folder.write("plan.77-12.tmp", "half");
  for (const char *other : {"plan.1.tmp", "plan.a-0.tmp", "plan.1-.tmp", "other.1-0.tmp", "plan.1-0.tmp2"})
    folder.write(other, "mine");
  const std::string locked = folder.write("plan.5-5.tmp", "being written");
  int writer = open(locked.c_str(), O_RDWR);
  ASSERT_EQ(flock(writer, LOCK_EX), 0);
  EXPECT_TRUE(writeFile(path, "new").ok());
  EXPECT_FALSE(std::filesystem::exists(folder / "plan.123-0.tmp"));
  EXPECT_FALSE(std::filesystem::exists(folder / "plan.77-12.tmp"));
  EXPECT_EQ(TemporaryFolder::read(locked), "being written");
  EXPECT_EQ(folder.entries(), 7);
  close(writer);
  EXPECT_TRUE(writeFile(path, "newer").ok());
  EXPECT_EQ(folder.entries(), 6);
}

TEST(File, ALimitOfFileSizesIsAnError) {
  TemporaryFolder folder;
  const std::string path = folder.write("plan", "old");
  pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN); // as the tools do
    const rlimit limit = {4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    Status status = writeFile(path, std::string(10000, 'x'));
    const bool isTold = !status.ok() && status.message().find("File too large; files may have 4096 bytes here: raise the limit (ulimit -f)") != std::string::npos;
    _exit(isTold ? 0 : 1);
  }
  int result = -1;
  ASSERT_EQ(waitpid(child, &result, 0), child);
  EXPECT_EQ(result, 0);
  EXPECT_EQ(TemporaryFolder::read(path), "old");
  EXPECT_EQ(folder.entries(), 1);
}

TEST(File, Paths) {
  EXPECT_EQ(folderOf("a/b/c"), "a/b");
  EXPECT_EQ(folderOf("c"), ".");
  EXPECT_EQ(folderOf("/c"), "/");
  EXPECT_EQ(resolvePath("a/b", "c"), "a/b/c");
  EXPECT_EQ(resolvePath(".", "c"), "c");
  EXPECT_EQ(resolvePath("/", "c"), "/c");
  EXPECT_EQ(resolvePath("a", "/c"), "/c");
}

TEST(Hash, OnePerMiB) {
  std::string data((2 << 20) + 5, 'x');
  std::vector<uint64_t> hashes = hashChunks(data.data(), int64_t(data.size()));
  ASSERT_EQ(hashes.size(), 3u);
  EXPECT_EQ(hashes[0], hashes[1]);
  EXPECT_EQ(hashes[2], hashBytes("xxxxx", 5));
  data[(1 << 20) + 7] = 'y';
  std::vector<uint64_t> changed = hashChunks(data.data(), int64_t(data.size()));
  EXPECT_EQ(changed[0], hashes[0]);
  EXPECT_NE(changed[1], hashes[1]);
  EXPECT_EQ(changed[2], hashes[2]);
  EXPECT_TRUE(hashChunks(nullptr, 0).empty());
  EXPECT_EQ(hashChunks(data.data(), 1 << 20).size(), 1u);
  // The value of the algorithm itself (xxhash's own test of XXH3_64bits of no bytes): files depend on it.
  EXPECT_EQ(hashBytes("", 0), 0x2D06800538D394C2ull);
}

TEST(File, WritesToWhatIsOpen) {
  TemporaryFolder folder;
  int open = ::open((folder / "a").c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_EQ(::write(open, "before ", 7), 7);
  // As /dev/stdout: neither the link nor the file behind it is replaced, and what was written stays.
  for (const char *place : {"/dev/fd/", "/proc/self/fd/"})
    EXPECT_TRUE(writeFile(place + std::to_string(open), "x").ok()) << place;
  ASSERT_EQ(::write(open, " after", 6), 6);
  ::close(open);
  EXPECT_EQ(MappedFile::open(folder / "a")->text(), "before xx after");
  EXPECT_THAT(writeFile("/dev/fd/" + std::to_string(open), "x").text(), HasSubstr("cannot open for writing"));
}
