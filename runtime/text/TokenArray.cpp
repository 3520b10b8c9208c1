#include "runtime/text/TokenArray.h"

#include "runtime/base/CountText.h"
#include "runtime/base/FileKind.h"
#include "runtime/base/Hash.h"
#include "runtime/base/Npy.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace hpc::text {

/// Pages that are given back are in the page cache still.
constexpr int64_t mostResident = int64_t(32) << 20;
constexpr int64_t blockTokens = int64_t(1) << 18;
/// The kernel maps the block of the page cache that a touched page is in, which may have so many.
constexpr int64_t bytesAround = int64_t(2) << 20;

template <typename Number> static Number numberAt(const std::byte *place) {
  Number number;
  std::memcpy(&number, place, sizeof(Number));
  return number;
}

static bool endsIn(const std::string &text, std::string_view ending) {
  return text.size() > ending.size() && text.compare(text.size() - ending.size(), ending.size(), ending) == 0;
}

template <typename Number> static void copyAs(const std::byte *from, int64_t count, int64_t *to) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = int64_t(numberAt<Number>(from + i * int64_t(sizeof(Number)))); // ids of 64 bits without a sign become negative ones
}

static void copyTokens(DType dtype, const std::byte *from, int64_t count, int64_t *to) {
  switch (dtype) {
  case DType::I64:
  case DType::U64:
    return copyAs<int64_t>(from, count, to);
  case DType::I32:
    return copyAs<int32_t>(from, count, to);
  case DType::U32:
    return copyAs<uint32_t>(from, count, to);
  case DType::I16:
    return copyAs<int16_t>(from, count, to);
  case DType::U16:
    return copyAs<uint16_t>(from, count, to);
  case DType::I8:
    return copyAs<int8_t>(from, count, to);
  default:
    return copyAs<uint8_t>(from, count, to);
  }
}

Status TokenArray::wrong(const std::string &what) const { return Status::error(ErrorKind::Usage, "'" + name + "' " + what); }

std::pair<int64_t, int64_t> TokenArray::document(int64_t number) const {
  auto start = [&](int64_t i) { return i == documentCount ? count : numberAt<int64_t>(documentStarts + i * 8) / unit; };
  return {start(number), start(number + 1)};
}

void TokenArray::releaseAfter(int64_t bytes) const {
  if (*touched += bytes + bytesAround; *touched < mostResident)
    return;
  *touched = 0;
  file.release();
  index.release();
}

void TokenArray::take(int64_t first, int64_t count, int64_t *to) const {
  copyTokens(type, tokens + first * byteSize(type), count, to);
  releaseAfter(count * byteSize(type));
}

/// Calls visit(first, count) for the tokens in order, block by block, until it returns false.
template <typename Visit> void TokenArray::visitBlocks(const Visit &visit) const {
  for (int64_t first = 0; first < count; first += blockTokens) {
    const int64_t some = std::min(blockTokens, count - first);
    if (!visit(first, some))
      break;
    releaseAfter(some * byteSize(type));
  }
}

uint64_t TokenArray::fingerprint() const {
  uint64_t hash = uint64_t(count) * 31 + uint64_t(type);
  visitBlocks([&](int64_t first, int64_t some) {
    hash = hash * 31 + hashBytes(tokens + first * byteSize(type), some * byteSize(type));
    return true;
  });
  for (int64_t first = 0; first < documentCount; first += blockTokens) {
    const int64_t some = std::min(blockTokens, documentCount - first);
    hash = hash * 31 + hashBytes(documentStarts + first * 8, some * 8);
    releaseAfter(some * 8);
  }
  return hash;
}

int64_t TokenArray::findOutside(int64_t low, int64_t high) const {
  std::vector<int64_t> block(static_cast<size_t>(std::min(blockTokens, count)));
  int64_t found = -1;
  visitBlocks([&](int64_t first, int64_t some) {
    copyTokens(type, tokens + first * byteSize(type), some, block.data());
    const auto end = block.begin() + some;
    const auto [least, largest] = std::minmax_element(block.begin(), end);
    if (*least >= low && *largest < high)
      return true;
    found = first + (std::find_if(block.begin(), end, [&](int64_t token) { return token < low || token >= high; }) - block.begin());
    return false;
  });
  return found;
}

/// Checks that documents begin in order and within the tokens; the first one at token 0.
Status TokenArray::takeDocuments(const std::byte *starts, int64_t number, int64_t unitOfStarts) {
  documentStarts = starts;
  documentCount = number;
  unit = unitOfStarts;
  int64_t before = 0;
  for (int64_t i = 0; i < number; ++i) {
    const int64_t start = numberAt<int64_t>(starts + i * 8);
    if (start < before || start % unit != 0 || start / unit > count || (i == 0 && start != 0))
      return wrong("says that document " + std::to_string(i) + " begins at " + std::to_string(start) + (unit > 1 ? " bytes" : "") +
                   ", which is not in order or beyond its " + countText(count, "token") + "; make the files again");
    before = start;
  }
  index.release();
  return Status::success();
}

namespace {
/// NumPy's types by the codes of Megatron's index, from 1; Bool: none of integers.
constexpr DType megatronTypes[] = {DType::U8, DType::I8, DType::I16, DType::I32, DType::I64, DType::Bool, DType::Bool, DType::U16};
constexpr std::string_view megatronMagic("MMIDIDX\0\0", 9);

/// "x" of "x.idx", "x.bin" and "x".
std::string stemOf(const std::string &path) {
  return endsIn(path, ".idx") || endsIn(path, ".bin") ? path.substr(0, path.size() - 4) : path;
}

bool isMegatronIndex(const std::string &path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    return false;
  Expected<MappedFile> file = MappedFile::open(path);
  return file.ok() && file->text().substr(0, megatronMagic.size()) == megatronMagic;
}
} // namespace

/// The index: magic number, version, code of the type, numbers of sequences and of document bounds; then the sequences' tokens (32 bits)
/// and their bytes' places (64 bits); then the bounds of documents, in sequences.
Expected<bool> TokenArray::takeMegatron() {
  const std::string given = name, stem = stemOf(given), own = isMegatronIndex(given) ? given : stem + ".idx";
  if (own != given && !isMegatronIndex(own))
    return false;
  name = own;
  Expected<MappedFile> opened = MappedFile::open(own);
  HPC_RETURN_IF_ERROR(opened.status());
  index = std::move(*opened);
  constexpr int64_t header = 9 + 8 + 1 + 8 + 8;
  if (index.size() < header)
    return wrong("ends within its header; make the index again");
  const std::byte *start = index.data();
  if (const int64_t version = numberAt<int64_t>(start + 9); version != 1)
    return wrong("is an index of version " + std::to_string(version) + ", and 1 is known; make it with a present Megatron-LM");
  const uint8_t code = numberAt<uint8_t>(start + 17);
  const DType dtype = code >= 1 && code <= std::size(megatronTypes) ? megatronTypes[code - 1] : DType::Bool;
  if (dtype == DType::Bool)
    return wrong("names type " + std::to_string(code) + " for its tokens, which is none of integers; make it with one");
  const int64_t sequences = numberAt<int64_t>(start + 18), bounds = numberAt<int64_t>(start + 26), rest = index.size() - header;
  if (sequences < 0 || bounds < 0 || sequences > rest / 12 || bounds > (rest - sequences * 12) / 8)
    return wrong("has " + std::to_string(index.size()) + " bytes, too few for its " + std::to_string(sequences) + " sequences and " + std::to_string(bounds) +
                 " bounds of documents; make the index again");
  Expected<MappedFile> binary = MappedFile::open(stem + ".bin");
  if (!binary.ok())
    return wrong("is an index of '" + stem + ".bin', which cannot be read: " + binary.status().message());
  file = std::move(*binary);
  const std::byte *lengths = start + header, *places = lengths + sequences * 4;
  const int64_t bytes = byteSize(dtype);
  int64_t next = 0;
  for (int64_t i = 0; i < sequences; ++i) {
    const int64_t length = numberAt<int32_t>(lengths + i * 4), place = numberAt<int64_t>(places + i * 8);
    if (length < 0 || place < 0 || place > file.size() || length > (file.size() - place) / bytes)
      return wrong("has sequence " + std::to_string(i) + " at byte " + std::to_string(place) + " with " + countText(length, "token") + " of " +
                   std::to_string(bytes) + " bytes, outside the " + std::to_string(file.size()) + " bytes of '" + stem + ".bin'; the two files belong to "
                   "different data or one is cut off");
    if (place != next)
      return Status::error(ErrorKind::Unsupported, "'" + name + "' has sequence " + std::to_string(i) + " at byte " + std::to_string(place) + ", and the one before ends at " +
                                                       std::to_string(next) + "; sequences that do not follow each other are not read; write them again in order");
    next = place + length * bytes;
  }
  for (int64_t i = 0, before = 0; i < bounds; ++i) {
    const int64_t bound = numberAt<int64_t>(places + sequences * 8 + i * 8);
    if (bound < before || bound > sequences)
      return wrong("has a document that ends at sequence " + std::to_string(bound) + ", which is not in order or beyond its " + std::to_string(sequences) +
                   " sequences; make the index again");
    before = bound;
  }
  type = dtype;
  tokens = file.data();
  count = next / bytes;
  HPC_RETURN_IF_ERROR(takeDocuments(places, sequences, bytes));
  return true;
}

Expected<bool> TokenArray::takeArray() {
  if (fileKindOf(file.text().substr(0, 4096)) != FileKind::Npy)
    return false;
  Expected<NpyView> view = viewNpy(file.text(), "'" + name + "'");
  HPC_RETURN_IF_ERROR(view.status());
  if (view->shape.size() != 1 || isFloat(view->dtype) || view->dtype == DType::Bool)
    return wrong("is " + shapeText(view->shape) + " of " + hpc::name(view->dtype) +
                 "; a stream of tokens is one dim of integers; give other data as .npz with names");
  type = view->dtype;
  tokens = reinterpret_cast<const std::byte *>(view->data.data());
  count = view->shape[0];
  std::error_code error;
  const std::string beside = (endsIn(name, ".npy") ? name.substr(0, name.size() - 4) : name) + ".documents.npy";
  if (!std::filesystem::is_regular_file(beside, error))
    return true;
  Expected<MappedFile> opened = MappedFile::open(beside);
  HPC_RETURN_IF_ERROR(opened.status());
  index = std::move(*opened);
  Expected<NpyView> starts = viewNpy(index.text(), "'" + beside + "'");
  HPC_RETURN_IF_ERROR(starts.status());
  if (starts->shape.size() != 1 || starts->dtype != DType::I64)
    return Status::error(ErrorKind::Usage, "'" + beside + "' is " + shapeText(starts->shape) + " of " + hpc::name(starts->dtype) +
                                               "; where documents begin is one dim of i64; make it again or remove it");
  HPC_RETURN_IF_ERROR(takeDocuments(reinterpret_cast<const std::byte *>(starts->data.data()), starts->shape[0], 1).at("'" + beside + "'"));
  return true;
}

Expected<bool> TokenArray::takeLlmC() {
  constexpr int64_t header = 256 * 4;
  struct {
    int32_t magic, version;
    DType dtype;
  } constexpr known[] = {{20240520, 1, DType::U16}, {20240520, 2, DType::U32}, {20240801, 7, DType::U32}};
  if (file.size() < header)
    return false;
  const int32_t magic = numberAt<int32_t>(file.data()), version = numberAt<int32_t>(file.data() + 4), given = numberAt<int32_t>(file.data() + 8);
  if (std::none_of(std::begin(known), std::end(known), [&](const auto &one) { return one.magic == magic; }))
    return false;
  const auto *format = std::find_if(std::begin(known), std::end(known), [&](const auto &one) { return one.magic == magic && one.version == version; });
  if (format == std::end(known))
    return wrong("is a file of llm.c of version " + std::to_string(version) + ", which is not known; 1 and 2 are");
  type = format->dtype;
  if (given < 0 || file.size() != header + given * byteSize(type))
    return wrong("has " + std::to_string(file.size()) + " bytes, and its header says " + countText(given, "token") + " of " + std::to_string(byteSize(type)) +
                 " bytes after 1024; it is cut off or damaged, get it again");
  tokens = file.data() + header;
  count = given;
  return true;
}

/// Decides the width of tokens without a header. Read as 16 bits, every second one of 32 bits would be 0 where ids are small.
Status TokenArray::chooseBits(const RawTokens &raw, std::vector<std::string> &notes) {
  auto are = [&](DType dtype) {
    type = dtype;
    count = file.size() / byteSize(dtype);
    return file.size() % byteSize(dtype) == 0;
  };
  if (raw.bits != 0)
    return are(raw.bits == 32 ? DType::U32 : DType::U16) ? Status::success() : wrong("has " + std::to_string(file.size()) + " bytes, which are no ids of " + std::to_string(raw.bits) + " bits; leave out --bin-bits");
  if (file.size() % 2)
    return wrong("has an odd number of bytes; a .bin without a header holds tokens of 16 or 32 bits");
  if (raw.vocabulary > int64_t(1) << 16 && raw.vocabulary < INT64_MAX)
    return are(DType::U32) && findOutside(0, raw.vocabulary) < 0
               ? Status::success()
               : wrong("has no header, and the model takes ids to " + std::to_string(raw.vocabulary - 1) + ", which need 32 bits, but as such its numbers are none of "
                       "them; --bin-bits=16 reads it as ids of 16 bits, if it was made for another vocabulary on purpose");
  bool isEverySecondZero = are(DType::U32);
  are(DType::U16);
  visitBlocks([&](int64_t first, int64_t some) {
    for (int64_t i = 1; i < some && isEverySecondZero; i += 2)
      isEverySecondZero = numberAt<uint16_t>(tokens + (first + i) * 2) == 0;
    return isEverySecondZero;
  });
  if (isEverySecondZero && are(DType::U32))
    notes.push_back("note: '" + name + "' is read as ids of 32 bits, since of 16 bits every second one would be 0; --bin-bits=16 reads it so");
  return Status::success();
}

Status TokenArray::takeRaw(const RawTokens &raw, std::vector<std::string> &notes) {
  // Text of two letters a token is as likely as other tokens.
  const FileKind kind = fileKindOf(file.text());
  const bool isByChance = kind == FileKind::SafeTensors && numberAt<uint64_t>(file.data()) > uint64_t(file.size()); // by two bytes alone
  const bool hasKind = kind != FileKind::Unknown && kind != FileKind::Text && kind != FileKind::Json && !isByChance;
  if (hasKind || (!endsIn(name, ".bin") && raw.bits == 0))
    return wrong("is neither text (.jsonl, .txt) nor .npz (an array for each input) nor .npy, .bin or .idx (tokens)" + (hasKind ? whatItIs(kind) : ""));
  tokens = file.data();
  return chooseBits(raw, notes);
}

Expected<TokenArray> TokenArray::open(const std::string &path, const RawTokens &raw, std::vector<std::string> &notes) {
  TokenArray array;
  array.name = path;
  Expected<bool> isIt = array.takeMegatron();
  HPC_RETURN_IF_ERROR(isIt.status());
  if (!*isIt) {
    Expected<MappedFile> file = MappedFile::open(path);
    HPC_RETURN_IF_ERROR(file.status());
    array.file = std::move(*file);
    isIt = array.takeArray();
    HPC_RETURN_IF_ERROR(isIt.status());
  }
  if (!*isIt)
    isIt = array.takeLlmC();
  HPC_RETURN_IF_ERROR(isIt.status());
  if (!*isIt)
    HPC_RETURN_IF_ERROR(array.takeRaw(raw, notes));
  if (raw.bits != 0 && *isIt && byteSize(array.type) * 8 != raw.bits)
    return array.wrong("says itself that its tokens are " + std::string(hpc::name(array.type)) + "; leave out --bin-bits");
  return array;
}

} // namespace hpc::text
