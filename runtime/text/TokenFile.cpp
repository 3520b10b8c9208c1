#include "runtime/text/TokenFile.h"

#include "runtime/base/File.h"
#include "runtime/base/Npy.h"

#include <atomic>
#include <cstdio>
#include <thread>
#include <xxhash.h>

namespace hpc::text {

/// Of all that decides the tokens: the text, unpacked, the tokenizer and the settings.
static Expected<uint64_t> identityOf(const std::string &path, const Tokenizer &tokenizer, const DocumentOptions &options) {
  Expected<ByteSource> source = ByteSource::open(path);
  HPC_RETURN_IF_ERROR(source.status());
  struct State {
    XXH3_state_t *state = XXH3_createState();
    ~State() { XXH3_freeState(state); }
  } hash;
  XXH3_64bits_reset(hash.state);
  // Of several versions of this code, those that make other tokens have other numbers.
  const std::string settings = "1 " + std::to_string(tokenizer.identity()) + " " + std::to_string(tokenizer.end().value_or(-1)) + " " +
                               std::to_string(options.skipBadLines) + " " + (isJsonLines(path) ? options.textKey : "") + "\n";
  XXH3_64bits_update(hash.state, settings.data(), settings.size());
  std::vector<char> block(size_t(1) << 20);
  while (true) {
    Expected<int64_t> got = source->read(block.data(), int64_t(block.size()));
    HPC_RETURN_IF_ERROR(got.status());
    if (*got == 0)
      return XXH3_64bits_digest(hash.state);
    XXH3_64bits_update(hash.state, block.data(), size_t(*got));
  }
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

Expected<TokenFile> tokenize(const std::string &path, const Tokenizer &tokenizer, DocumentOptions options, const std::string &folder,
                             int64_t threads) {
  options.mayCut = tokenizer.mayCut();
  Expected<uint64_t> identity = identityOf(path, tokenizer, options);
  HPC_RETURN_IF_ERROR(identity.status());
  char digits[32];
  std::snprintf(digits, sizeof(digits), ".%016llx.npy", static_cast<unsigned long long>(*identity));
  TokenFile result;
  result.path = (folder.empty() ? path : folder + "/" + path.substr(path.rfind('/') + 1)) + digits;
  if (Expected<int64_t> count = countIn(result.path); count.ok()) {
    result.tokens = *count;
    return result;
  }

  Expected<Documents> documents = Documents::open(path, options);
  HPC_RETURN_IF_ERROR(documents.status());
  Expected<AtomicFile> file = AtomicFile::create(result.path);
  if (!file.ok())
    return file.status().at("the tokens of '" + path + "' (--token-cache names another folder for them)");
  const DType dtype = tokenizer.size() <= 65536 ? DType::U16 : DType::I32;
  const std::string header = npyHeader({dtype, {0}, {}});
  HPC_RETURN_IF_ERROR(file->write(header));
  std::vector<std::unique_ptr<Tokenizer::Memory>> memories;
  for (int64_t i = 0; i < std::max<int64_t>(threads, 1); ++i)
    memories.push_back(tokenizer.makeMemory());
  // A part of a text for each thread, or many documents.
  constexpr int64_t partBytes = int64_t(4) << 20;
  std::vector<std::vector<int32_t>> ids;
  std::vector<uint16_t> narrow;
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
    for (size_t i = 0; i < some.size(); ++i) {
      result.documents += some[i].isLast;
      result.tokens += int64_t(ids[i].size());
      narrow.assign(ids[i].begin(), ids[i].end());
      HPC_RETURN_IF_ERROR(dtype == DType::U16 ? file->write(narrow.data(), int64_t(narrow.size() * 2))
                                              : file->write(ids[i].data(), int64_t(ids[i].size() * 4)));
    }
  }
  result.badLines = documents->badLines();
  if (result.documents == 0)
    return Status::error(ErrorKind::Usage, "'" + path + "' has no text" + (result.badLines ? " but in bad lines" : "") + "; give a file with some");
  HPC_RETURN_IF_ERROR(file->overwrite(0, npyHeader({dtype, {result.tokens}, {}})));
  HPC_RETURN_IF_ERROR(file->commit());
  result.isNew = true;
  return result;
}

} // namespace hpc::text
