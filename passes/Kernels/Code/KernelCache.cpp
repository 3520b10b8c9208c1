// An entry is a header and the code, in a file named by its key. It appears whole, by a rename, but is not flushed to
// disk: after a crash of the machine it may hold anything, which its hash detects.
#include "passes/Kernels/Code/KernelCache.h"

#include "runtime/base/File.h"
#include "runtime/base/Hash.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>
#include <filesystem>
#include <unistd.h>

namespace hpc::kernels {

namespace {
struct Header {
  char magic[8] = {'h', 'p', 'c', 'k', 'e', 'r', 'n', '1'};
  KernelCache::Key key = {};
  uint64_t hash = 0; ///< of the code
  int64_t bytes = 0; ///< of code, which is the rest of the file
  bool operator==(const Header &other) const { return std::memcmp(this, &other, sizeof(Header)) == 0; }
};
static_assert(sizeof(Header) == 56, "no padding, which would be written and compared");

Header headerOf(const KernelCache::Key &key, const void *code, int64_t bytes) {
  Header header;
  header.key = key;
  header.hash = hashBytes(code, bytes);
  header.bytes = bytes;
  return header;
}

Status folderError(const std::string &folder, const std::string &what) {
  return Status::error(ErrorKind::Io, "--kernel-cache=" + folder + " " + what + "; give a folder that you can write to");
}
} // namespace

Expected<KernelCache> KernelCache::open(const std::string &folder, std::string compiler) {
  if (folder.find('%') != std::string::npos) // llvm::sys::fs::TempFile would replace it by digits
    return Status::error(ErrorKind::Usage, "--kernel-cache=" + folder + " has a '%' in its name; give a folder without");
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return folderError(folder, "cannot be made: " + error.message());
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    return folderError(folder, std::string("cannot be written to: ") + std::strerror(errno));
  return KernelCache(folder, std::move(compiler));
}

KernelCache::Key KernelCache::keyOf(ArrayRef<StringRef> texts) const {
  llvm::BLAKE3 hash;
  auto add = [&](StringRef text) {
    hash.update(std::to_string(text.size()) + ":");
    hash.update(text);
  };
  add(compiler);
  llvm::for_each(texts, add);
  return hash.final<sizeof(Key)>();
}

std::string KernelCache::path(const Key &key) const {
  return (std::filesystem::path(folder) / (llvm::toHex(key, /*LowerCase=*/true) + ".kernel")).string();
}

std::optional<SmallVector<char, 0>> KernelCache::find(const Key &key) const {
  Expected<MappedFile> file = MappedFile::open(path(key));
  if (!file.ok() || file->size() < int64_t(sizeof(Header)))
    return std::nullopt;
  Header header;
  std::memcpy(&header, file->data(), sizeof(Header));
  const char *code = file->text().data() + sizeof(Header);
  int64_t bytes = file->size() - int64_t(sizeof(Header));
  if (!(header == headerOf(key, code, bytes)))
    return std::nullopt;
  return SmallVector<char, 0>(code, code + bytes);
}

Status KernelCache::keep(const Key &key, ArrayRef<char> code) const {
  namespace fs = llvm::sys::fs;
  auto failed = [&](llvm::Error error) {
    return folderError(folder, "cannot be written to: " + llvm::toString(std::move(error)));
  };
  // LLVM removes it where a signal ends the process.
  llvm::Expected<fs::TempFile> file = fs::TempFile::create(folder + "/%%%%%%%%%%%%.tmp", 0666);
  if (!file)
    return failed(file.takeError());
  Header header = headerOf(key, code.data(), int64_t(code.size()));
  llvm::raw_fd_ostream stream(file->FD, /*shouldClose=*/false);
  stream.write(reinterpret_cast<const char *>(&header), sizeof(header));
  stream.write(code.data(), code.size());
  stream.flush();
  if (std::error_code error = stream.error()) {
    stream.clear_error();
    llvm::consumeError(file->discard());
    return failed(llvm::errorCodeToError(error));
  }
  if (llvm::Error error = file->keep(path(key))) {
    llvm::consumeError(file->discard());
    return failed(std::move(error));
  }
  return Status::success();
}

} // namespace hpc::kernels
