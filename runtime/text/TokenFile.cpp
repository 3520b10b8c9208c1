#include "runtime/text/TokenFile.h"

#include "runtime/base/File.h"
#include "runtime/base/Hash.h"
#include "runtime/base/Npy.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

namespace hpc::text {

namespace {
/// Held from its making to its end. A file system without locks grants all of them.
class LockedFile {
public:
  explicit LockedFile(const std::string &path) : descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    while (descriptor >= 0 && ::flock(descriptor, LOCK_EX) != 0 && errno == EINTR)
      ;
  }
  ~LockedFile() {
    if (descriptor >= 0)
      ::close(descriptor);
  }
  LockedFile(const LockedFile &) = delete;

private:
  int descriptor;
};
} // namespace

/// A hash of all that decides the tokens: the text, as it is packed, the tokenizer and the settings.
static Expected<uint64_t> identityOf(const std::string &path, const Tokenizer &tokenizer, const DocumentOptions &options) {
  Expected<TextKind> kind = textKindOf(path);
  HPC_RETURN_IF_ERROR(kind.status());
  Expected<MappedFile> file = MappedFile::open(path);
  HPC_RETURN_IF_ERROR(file.status());
  // Of several versions of this code, those that make other tokens have other numbers.
  const std::string settings = "2 " + std::to_string(tokenizer.identity()) + " " + std::to_string(tokenizer.end().value_or(-1)) + " " +
                               std::to_string(options.skipBadLines) + " " + (*kind == TextKind::Lines ? options.textKey : "") + "\n";
  uint64_t hash = hashBytes(settings.data(), int64_t(settings.size())) + uint64_t(file->size());
  constexpr int64_t blockBytes = int64_t(16) << 20;
  for (int64_t at = 0; at < file->size(); at += blockBytes) {
    hash = hash * 31 + hashBytes(file->data() + at, std::min(blockBytes, file->size() - at));
    file->release();
  }
  return hash;
}

/// The tokens of each document, by as many threads as there are memories.
static Status encodeAll(const Tokenizer &tokenizer, const std::vector<Document> &documents, std::vector<std::vector<int32_t>> &ids,
                        std::vector<std::unique_ptr<Tokenizer::Memory>> &memories) {
  ids.resize(documents.size());
  std::atomic<size_t> next = 0;
  std::vector<Status> statuses(memories.size());
  auto work = [&](size_t thread) {
    for (size_t i = next++; i < documents.size() && statuses[thread].ok(); i = next++) {
      ids[i].clear();
      statuses[thread] = tokenizer.encode(documents[i].text, ids[i], *memories[thread]);
      if (documents[i].isLast && tokenizer.end())
        ids[i].push_back(*tokenizer.end());
    }
  };
  std::vector<std::thread> threads;
  for (size_t thread = 1; thread < memories.size(); ++thread)
    threads.emplace_back(work, thread);
  work(0);
  for (std::thread &thread : threads)
    thread.join();
  for (const Status &status : statuses)
    HPC_RETURN_IF_ERROR(status);
  return Status::success();
}

static Expected<int64_t> countIn(const std::string &path) {
  Expected<MappedFile> file = MappedFile::open(path);
  HPC_RETURN_IF_ERROR(file.status());
  Expected<NpyView> view = viewNpy(file->text(), "'" + path + "'");
  HPC_RETURN_IF_ERROR(view.status());
  return view->shape.size() == 1 ? view->shape[0] : 0;
}

namespace {
/// One dim of numbers whose count is known when the last one is written.
class GrowingArray {
public:
  static Expected<GrowingArray> create(const std::string &path, DType dtype) {
    Expected<AtomicFile> file = AtomicFile::create(path);
    HPC_RETURN_IF_ERROR(file.status());
    GrowingArray array(std::move(*file), dtype);
    HPC_RETURN_IF_ERROR(array.file.write(npyHeader({dtype, {0}, {}})));
    return array;
  }
  template <typename Number> Status add(const std::vector<Number> &numbers) {
    count += int64_t(numbers.size());
    return file.write(numbers.data(), int64_t(numbers.size() * sizeof(Number)));
  }
  Status commit() {
    HPC_RETURN_IF_ERROR(file.overwrite(0, npyHeader({dtype, {count}, {}})));
    return file.commit();
  }
  int64_t count = 0;

private:
  GrowingArray(AtomicFile file, DType dtype) : file(std::move(file)), dtype(dtype) {}
  AtomicFile file;
  DType dtype;
};
} // namespace

Expected<TokenFile> tokenize(const std::string &path, const Tokenizer &tokenizer, DocumentOptions options, const std::string &folder,
                             int64_t threads) {
  options.mayCut = tokenizer.mayCut();
  Expected<uint64_t> identity = identityOf(path, tokenizer, options);
  HPC_RETURN_IF_ERROR(identity.status());
  char digits[32];
  std::snprintf(digits, sizeof(digits), ".%016llx", static_cast<unsigned long long>(*identity));
  TokenFile result;
  result.identity = *identity;
  const std::string stem = (folder.empty() ? path : folder + "/" + path.substr(path.rfind('/') + 1)) + digits;
  result.path = stem + ".npy";
  auto isThere = [&] {
    Expected<int64_t> tokens = countIn(result.path), starts = countIn(stem + ".documents.npy");
    result.tokens = tokens.ok() ? *tokens : 0;
    result.documents = starts.ok() ? *starts : 0;
    return tokens.ok() && starts.ok();
  };
  if (isThere())
    return result;
  const LockedFile lock(path);
  if (isThere())
    return result;

  result.tokens = result.documents = 0;
  Expected<Documents> documents = Documents::open(path, options);
  HPC_RETURN_IF_ERROR(documents.status());
  const std::string place = "the tokens of '" + path + "' (--token-cache names another folder for them)";
  const DType dtype = tokenizer.size() <= 65536 ? DType::U16 : DType::I32;
  Expected<GrowingArray> file = GrowingArray::create(result.path, dtype), starts = GrowingArray::create(stem + ".documents.npy", DType::I64);
  HPC_RETURN_IF_ERROR(file.status().at(place));
  HPC_RETURN_IF_ERROR(starts.status().at(place));
  std::vector<std::unique_ptr<Tokenizer::Memory>> memories;
  for (int64_t i = 0; i < std::max<int64_t>(threads, 1); ++i)
    memories.push_back(tokenizer.makeMemory());
  // A part of a text for each thread, or many documents.
  constexpr int64_t partBytes = int64_t(4) << 20;
  std::vector<std::vector<int32_t>> ids;
  std::vector<uint16_t> narrow;
  std::vector<int64_t> begins;
  bool isWithin = false; // a document
  while (true) {
    std::vector<Document> some;
    for (int64_t had = -1, bytes = 0; bytes < partBytes * int64_t(memories.size()) && had != int64_t(some.size());) {
      had = int64_t(some.size());
      Expected<std::vector<Document>> more = documents->next(partBytes);
      HPC_RETURN_IF_ERROR(more.status());
      for (Document &document : *more) {
        bytes += int64_t(document.text.size());
        some.push_back(std::move(document));
      }
    }
    if (some.empty())
      break;
    HPC_RETURN_IF_ERROR(encodeAll(tokenizer, some, ids, memories).at("'" + path + "'"));
    begins.clear();
    for (size_t i = 0; i < some.size(); ++i) {
      if (!isWithin && !ids[i].empty())
        begins.push_back(file->count);
      isWithin = !some[i].isLast && (isWithin || !ids[i].empty());
      narrow.assign(ids[i].begin(), ids[i].end());
      HPC_RETURN_IF_ERROR((dtype == DType::U16 ? file->add(narrow) : file->add(ids[i])).at(place));
    }
    HPC_RETURN_IF_ERROR(starts->add(begins).at(place));
  }
  result.badLines = documents->badLines();
  result.documents = starts->count;
  result.tokens = file->count;
  if (result.tokens == 0)
    return Status::error(ErrorKind::Usage, "'" + path + "' has no text" + (result.badLines ? " but in bad lines" : "") + "; give a file with some");
  // The tokens come last: a file of tokens has its documents beside it.
  HPC_RETURN_IF_ERROR(starts->commit().at(place));
  HPC_RETURN_IF_ERROR(file->commit().at(place));
  result.isNew = true;
  return result;
}

} // namespace hpc::text
