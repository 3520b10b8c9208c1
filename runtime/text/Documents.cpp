#include "runtime/text/Documents.h"

#include "runtime/base/FileKind.h"

#include <algorithm>
#include <simdjson.h>
#include <utf8proc.h>

namespace hpc::text {

static Status ioError(const std::string &message) { return Status::error(ErrorKind::Io, message); }

/// ".txt" of "a.txt.gz".
static std::string_view endingOf(std::string_view path) {
  for (std::string_view packed : {".gz", ".zst"})
    if (path.size() > packed.size() && path.substr(path.size() - packed.size()) == packed)
      path.remove_suffix(packed.size());
  const size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(dot);
}

Expected<TextKind> textKindOf(const std::string &path) {
  Expected<ByteSource> source = ByteSource::open(path);
  HPC_RETURN_IF_ERROR(source.status());
  std::string head(4096, '\0');
  Expected<int64_t> got = source->read(head.data(), int64_t(head.size()));
  HPC_RETURN_IF_ERROR(got.status());
  head.resize(size_t(*got));
  const FileKind kind = fileKindOf(head);
  const std::string_view ending = endingOf(path);
  // A brace that happens to be the ninth letter makes no safetensors file, whose first eight bytes are a number.
  const bool isJson = kind == FileKind::Json || (kind == FileKind::SafeTensors && head.find('\0') == std::string::npos);
  const bool isText = kind == FileKind::Text || isJson;
  if (!isText && kind != FileKind::Unknown && kind != FileKind::Empty)
    return TextKind::None;
  if (ending == ".jsonl" || ending == ".ndjson" || ending == ".json")
    return TextKind::Lines;
  if (ending == ".txt")
    return TextKind::Whole;
  if (!isText || ending == ".bin")
    return TextKind::None;
  return isJson && head[head.find_first_not_of(" \t\r\n")] == '{' ? TextKind::Lines : TextKind::Whole;
}

Expected<Documents> Documents::open(const std::string &path, const DocumentOptions &options) {
  Expected<TextKind> kind = textKindOf(path);
  HPC_RETURN_IF_ERROR(kind.status());
  Expected<ByteSource> source = ByteSource::open(path);
  HPC_RETURN_IF_ERROR(source.status());
  Documents documents(std::move(*source));
  documents.path = path;
  documents.options = options;
  documents.isLines = *kind == TextKind::Lines;
  return documents;
}

/// Reads until `bytes` bytes are there from `start` on; false where the file ends before.
Expected<bool> Documents::fill(int64_t bytes) {
  buffer.erase(0, start);
  start = 0;
  while (!isAtEnd && int64_t(buffer.size()) < bytes) {
    const size_t had = buffer.size();
    buffer.resize(size_t(bytes));
    Expected<int64_t> got = source.read(buffer.data() + had, bytes - int64_t(had));
    buffer.resize(had + (got.ok() ? size_t(*got) : 0));
    HPC_RETURN_IF_ERROR(got.status());
    isAtEnd = *got == 0;
  }
  return int64_t(buffer.size()) >= bytes;
}

/// The text of a JSON line. simdjson reads up to 64 bytes behind a text, which a copy with padding has.
static Expected<std::string> textOf(std::string_view line, const std::string &key) {
  thread_local simdjson::dom::parser parser;
  simdjson::dom::element json;
  simdjson::dom::object object;
  std::string_view text;
  if (simdjson::error_code error = parser.parse(line.data(), line.size(), /*realloc_if_needed=*/true).get(json))
    return ioError(error == simdjson::UTF8_ERROR ? "is no UTF-8" : std::string("is no JSON (") + simdjson::error_message(error) + ")");
  if (json.get(object))
    return ioError("is no JSON object");
  simdjson::dom::element value;
  if (object.at_key(key).get(value)) {
    std::string keys;
    for (simdjson::dom::key_value_pair field : object)
      keys += (keys.empty() ? "'" : ", '") + std::string(field.key) + "'";
    return ioError("has no key '" + key + "'" + (keys.empty() ? "" : "; its keys are " + keys) + " (--text-key)");
  }
  if (value.get(text))
    return ioError("has no string under '" + key + "' (--text-key)");
  return std::string(text);
}

Status Documents::takeLine(std::string_view text, std::vector<Document> &documents, int64_t &taken) {
  ++line;
  if (text.find_first_not_of(" \t\r") == std::string_view::npos)
    return Status::success();
  Expected<std::string> content = textOf(text, options.textKey);
  if (content.ok()) {
    taken += int64_t(content->size());
    documents.push_back({std::move(*content)});
    return Status::success();
  }
  if (options.skipBadLines) {
    ++skipped;
    return Status::success();
  }
  return ioError("'" + path + "', line " + std::to_string(line) + " " + content.status().message() + "; mend it, or give --skip-bad-lines");
}

Status Documents::takeLines(int64_t bytes, std::vector<Document> &documents) {
  int64_t taken = 0;
  bool isWithinLongLine = false;
  while (taken < bytes) {
    size_t end = buffer.find('\n', start);
    while (end == std::string::npos && !isAtEnd && int64_t(buffer.size() - start) < longestDocument) {
      const size_t had = buffer.size() - start;
      Expected<bool> filled = fill(std::min(int64_t(had) + std::max<int64_t>(int64_t(had), 1 << 20), longestDocument));
      HPC_RETURN_IF_ERROR(filled.status());
      end = buffer.find('\n', had);
    }
    if (end == std::string::npos && !isAtEnd) {
      if (!options.skipBadLines)
        return ioError("'" + path + "', line " + std::to_string(line + 1) + " is longer than 64 MiB; split the document, or give "
                       "--skip-bad-lines");
      buffer.clear();
      start = 0;
      isWithinLongLine = true;
      continue;
    }
    if (end == std::string::npos && start == buffer.size()) {
      skipped += isWithinLongLine;
      return Status::success();
    }
    const size_t stop = std::min(end, buffer.size());
    if (isWithinLongLine) {
      ++line, ++skipped;
      isWithinLongLine = false;
    } else {
      HPC_RETURN_IF_ERROR(takeLine(std::string_view(buffer).substr(start, stop - start), documents, taken));
    }
    start = std::min(stop + 1, buffer.size());
  }
  return Status::success();
}

/// The last place within `text` where a letter is followed by a space or a line's end; npos where there is none.
static size_t lastCut(std::string_view text) {
  for (size_t end = text.size(); end > 1; --end) {
    if (text[end - 1] != ' ' && text[end - 1] != '\n')
      continue;
    size_t letter = end - 2;
    while (letter > 0 && end - letter < 6 && (uint8_t(text[letter]) & 0xC0) == 0x80)
      --letter;
    utf8proc_int32_t point = 0;
    const auto *bytes = reinterpret_cast<const utf8proc_uint8_t *>(text.data()) + letter;
    const utf8proc_ssize_t length = utf8proc_iterate(bytes, utf8proc_ssize_t(end - 1 - letter), &point);
    if (length != utf8proc_ssize_t(end - 1 - letter))
      continue;
    const utf8proc_category_t category = utf8proc_category(point);
    if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO)
      return end - 1;
  }
  return std::string_view::npos;
}

static size_t firstBadByte(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    utf8proc_int32_t point = 0;
    const utf8proc_ssize_t length =
        utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t *>(text.data()) + at, utf8proc_ssize_t(text.size() - at), &point);
    if (length <= 0)
      break;
    at += size_t(length);
  }
  return at;
}

Status Documents::takePart(int64_t bytes, std::vector<Document> &documents) {
  Expected<bool> more = fill(options.mayCut ? std::min(bytes, longestDocument) : longestDocument);
  HPC_RETURN_IF_ERROR(more.status());
  if (buffer.empty() && hasBegun)
    return Status::success();
  size_t cut = *more && options.mayCut ? lastCut(buffer) : std::string::npos;
  if (*more && cut == std::string::npos && int64_t(buffer.size()) < longestDocument) {
    more = fill(longestDocument);
    HPC_RETURN_IF_ERROR(more.status());
    cut = *more && options.mayCut ? lastCut(buffer) : std::string::npos;
  }
  if (*more && cut == std::string::npos)
    return ioError("'" + path + "' has 64 MiB from byte " + std::to_string(place) + " on without " +
                   (options.mayCut ? "a word's end" : "an end, and this tokenizer takes documents whole") +
                   "; split it into documents (.jsonl)");
  const bool isLast = cut == std::string::npos;
  Document part{buffer.substr(0, cut), isLast};
  if (!simdjson::validate_utf8(part.text.data(), part.text.size()))
    return ioError("'" + path + "' is no UTF-8 at byte " + std::to_string(place + int64_t(firstBadByte(part.text))) +
                   "; convert it (iconv -f ENCODING -t UTF-8)");
  start = part.text.size();
  place += int64_t(start);
  hasBegun = true;
  if (!part.text.empty())
    documents.push_back(std::move(part));
  return Status::success();
}

Expected<std::vector<Document>> Documents::next(int64_t bytes) {
  std::vector<Document> documents;
  HPC_RETURN_IF_ERROR(isLines ? takeLines(bytes, documents) : takePart(bytes, documents));
  return documents;
}

} // namespace hpc::text
