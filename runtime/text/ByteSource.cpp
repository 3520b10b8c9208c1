// zlib reads gzip files and plain ones alike, several members one after the other too; libzstd reads frames.
#include "runtime/text/ByteSource.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/stat.h>
#include <vector>
#include <zlib.h>
#include <zstd.h>

namespace hpc::text {

struct ByteSource::Stream {
  std::string path;
  gzFile file = nullptr;
  ZSTD_DStream *zstd = nullptr;
  std::vector<char> packed; ///< of a Zstandard file: read and not yet unpacked
  ZSTD_inBuffer rest = {nullptr, 0, 0};
  bool isWithinFrame = false;

  ~Stream() {
    if (file)
      gzclose_r(file);
    ZSTD_freeDStream(zstd);
  }
  Status damaged(const std::string &why) const {
    return Status::error(ErrorKind::Io, "'" + path + "' cannot be unpacked: " + why + "; get the file again");
  }
  Expected<int64_t> readFile(char *to, int64_t bytes) {
    const int got = gzread(file, to, unsigned(std::min<int64_t>(bytes, 1 << 20)));
    int code = Z_OK;
    const char *why = got > 0 ? nullptr : gzerror(file, &code);
    if (code == Z_OK || code == Z_STREAM_END)
      return int64_t(got);
    if (code == Z_ERRNO)
      return Status::error(ErrorKind::Io, "'" + path + "' cannot be read: " + std::strerror(errno));
    return damaged(code == Z_BUF_ERROR ? "it ends too early" : why);
  }
  Expected<int64_t> readFrames(char *to, int64_t bytes) {
    ZSTD_outBuffer out = {to, size_t(bytes), 0};
    while (out.pos == 0) {
      if (rest.pos == rest.size) {
        Expected<int64_t> got = readFile(packed.data(), int64_t(packed.size()));
        if (!got.ok())
          return got;
        rest = {packed.data(), size_t(*got), 0};
        if (*got == 0 && isWithinFrame)
          return damaged("it ends too early");
        if (*got == 0)
          return int64_t(0);
      }
      const size_t code = ZSTD_decompressStream(zstd, &out, &rest);
      if (ZSTD_isError(code))
        return damaged(ZSTD_getErrorName(code));
      isWithinFrame = code != 0;
    }
    return int64_t(out.pos);
  }
};

ByteSource::ByteSource(std::unique_ptr<Stream> stream) : stream(std::move(stream)) {}
ByteSource::ByteSource(ByteSource &&) noexcept = default;
ByteSource &ByteSource::operator=(ByteSource &&) noexcept = default;
ByteSource::~ByteSource() = default;

Expected<ByteSource> ByteSource::open(const std::string &path) {
  auto failed = [&](const char *why) { return Status::error(ErrorKind::Io, "'" + path + "' cannot be opened: " + why); };
  struct stat state;
  if (::stat(path.c_str(), &state) != 0)
    return failed(std::strerror(errno));
  if (!S_ISREG(state.st_mode))
    return failed("it is no regular file; name a file of text");
  auto stream = std::make_unique<Stream>();
  stream->path = path;
  stream->file = gzopen(path.c_str(), "rb");
  if (!stream->file)
    return failed(std::strerror(errno));
  gzbuffer(stream->file, 1 << 18);
  // A Zstandard file is no gzip file, so zlib hands its bytes on as they are.
  char magic[4];
  const bool isZstd = gzread(stream->file, magic, 4) == 4 && std::memcmp(magic, "\x28\xB5\x2F\xFD", 4) == 0;
  gzrewind(stream->file);
  if (isZstd) {
    stream->packed.resize(1 << 18);
    stream->zstd = ZSTD_createDStream();
    if (!stream->zstd)
      return failed("there is no memory to unpack it");
  }
  return ByteSource(std::move(stream));
}

Expected<int64_t> ByteSource::read(char *to, int64_t bytes) {
  return stream->zstd ? stream->readFrames(to, bytes) : stream->readFile(to, bytes);
}

} // namespace hpc::text
