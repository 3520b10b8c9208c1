// Reads the header with a parser for exactly the dictionary that NumPy writes (any order of keys), and accepts a shape
// only if the file has its bytes.
#include "runtime/base/Npy.h"

#include "runtime/base/CountText.h"
#include "runtime/base/File.h"

#include <cstring>

namespace hpc {

namespace {

struct NpyType {
  DType type;
  const char *text; ///< as written; a reader takes '<', '=' and '|' before a type of one byte
};
constexpr NpyType descriptors[] = {
    {DType::F32, "<f4"}, {DType::F64, "<f8"}, {DType::F16, "<f2"},  {DType::BF16, "<V2"}, {DType::I64, "<i8"},
    {DType::I32, "<i4"}, {DType::I16, "<i2"}, {DType::I8, "|i1"},   {DType::U8, "|u1"},   {DType::U16, "<u2"},
    {DType::U32, "<u4"}, {DType::U64, "<u8"}, {DType::Bool, "|b1"},
};
static_assert(sizeof(descriptors) / sizeof(descriptors[0]) == numDTypes);

struct Header {
  std::string descr;
  bool fortranOrder = false;
  std::vector<int64_t> shape;
};

/// A recursive-descent parser of {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
class HeaderParser {
public:
  explicit HeaderParser(std::string_view text) : text(text) {}

  /// Empty if the header is valid, else its fault in words.
  std::string parse(Header &header) {
    bool seen[3] = {};
    if (!take('{'))
      return "its header is not a dictionary";
    while (!take('}')) {
      std::string key;
      if (!string(key) || !take(':'))
        return "its header has no key where one belongs";
      bool ok;
      if (key == "descr")
        ok = !seen[0] && (seen[0] = string(header.descr));
      else if (key == "fortran_order")
        ok = !seen[1] && (seen[1] = boolean(header.fortranOrder));
      else if (key == "shape")
        ok = !seen[2] && (seen[2] = tuple(header.shape));
      else
        return "its header has an unknown key";
      if (!ok)
        return "its header has a wrong or repeated value of '" + key + "' (structured types are not supported)";
      if (!take(',') && !peek('}'))
        return "its header lacks a comma";
    }
    skipSpace();
    if (at != text.size())
      return "its header goes on after its end";
    if (!seen[0] || !seen[1] || !seen[2])
      return "its header lacks descr, fortran_order or shape";
    return "";
  }

private:
  void skipSpace() {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t'))
      ++at;
  }
  bool peek(char c) {
    skipSpace();
    return at < text.size() && text[at] == c;
  }
  bool take(char c) {
    if (!peek(c))
      return false;
    ++at;
    return true;
  }
  bool string(std::string &value) {
    char quote = peek('\'') ? '\'' : '"';
    if (!take(quote))
      return false;
    size_t end = text.find(quote, at);
    if (end == std::string_view::npos)
      return false;
    value = std::string(text.substr(at, end - at));
    at = end + 1;
    return true;
  }
  bool boolean(bool &value) {
    skipSpace();
    for (bool option : {false, true}) {
      std::string_view word = option ? "True" : "False";
      if (text.substr(at, word.size()) == word) {
        at += word.size();
        value = option;
        return true;
      }
    }
    return false;
  }
  bool tuple(std::vector<int64_t> &values) {
    if (!take('('))
      return false;
    while (!take(')')) {
      constexpr size_t mostDims = 64; // NumPy's own limit
      if (values.size() == mostDims)
        return false;
      skipSpace();
      int64_t value = 0;
      size_t first = at;
      for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
        if (__builtin_mul_overflow(value, int64_t(10), &value) ||
            __builtin_add_overflow(value, int64_t(text[at] - '0'), &value))
          return false;
      if (at == first)
        return false;
      values.push_back(value);
      if (!take(',') && !peek(')'))
        return false;
    }
    return true;
  }

  std::string_view text;
  size_t at = 0;
};

std::optional<DType> parseDescriptor(const std::string &text) {
  if (text.size() < 3)
    return std::nullopt;
  for (const NpyType &entry : descriptors) {
    if (text.substr(1) != entry.text + 1)
      continue;
    bool anyOrder = byteSize(entry.type) == 1 || entry.type == DType::BF16;
    if (text[0] == '<' || text[0] == '=' || (text[0] == '|' && anyOrder))
      return entry.type;
  }
  return std::nullopt;
}

/// Reverses the order of dims: column-major bytes -> row-major bytes.
std::vector<std::byte> fromFortranOrder(const std::byte *source, const Array &array) {
  std::vector<std::byte> result(array.data.size());
  int64_t rank = int64_t(array.shape.size()), size = byteSize(array.dtype);
  std::vector<int64_t> index(size_t(rank), 0), stride(size_t(rank), 1);
  for (int64_t d = 1; d < rank; ++d)
    stride[d] = stride[d - 1] * array.shape[d - 1];
  int64_t from = 0;
  for (int64_t to = 0, count = array.elements(); to < count; ++to) {
    std::memcpy(result.data() + to * size, source + from * size, size_t(size));
    for (int64_t d = rank - 1; d >= 0; --d) {
      from += stride[d];
      if (++index[d] < array.shape[d])
        break;
      from -= index[d] * stride[d];
      index[d] = 0;
    }
  }
  return result;
}

} // namespace

Expected<NpyView> viewNpy(std::string_view bytes, const std::string &name) {
  auto wrong = [&](const std::string &what) { return Status::error(ErrorKind::Io, name + ": " + what); };
  if (bytes.substr(0, 6) != std::string_view("\x93NUMPY", 6))
    return wrong("is not a .npy array");
  if (bytes.size() < 10)
    return wrong("is cut off within its header");
  auto byteAt = [&](size_t i) { return size_t(uint8_t(bytes[i])); };
  size_t version = byteAt(6), start = version == 1 ? 10 : 12;
  if (version < 1 || version > 3)
    return wrong("has .npy version " + std::to_string(version) + "; versions 1 to 3 are known");
  if (bytes.size() < start)
    return wrong("is cut off within its header");
  size_t headerBytes = byteAt(8) | byteAt(9) << 8;
  if (version > 1)
    headerBytes |= byteAt(10) << 16 | byteAt(11) << 24;
  if (headerBytes > bytes.size() - start)
    return wrong("is cut off within its header");

  Header header;
  if (std::string problem = HeaderParser(bytes.substr(start, headerBytes)).parse(header); !problem.empty())
    return wrong(problem);
  std::optional<DType> type = parseDescriptor(header.descr);
  if (!type && header.descr.substr(0, 1) == ">")
    return wrong("is big-endian ('" + header.descr + "'); save it with .astype(a.dtype.newbyteorder('<'))");
  if (!type)
    return wrong("has element type '" + header.descr + "', which is not supported");
  std::optional<int64_t> needed = checkedBytes(*type, header.shape);
  std::string_view content = bytes.substr(start + headerBytes);
  if (!needed || uint64_t(*needed) != content.size())
    return wrong("has " + countText(content.size(), "byte") + " of data, which is not what its shape " +
                 shapeText(header.shape) + " of " + hpc::name(*type) + " takes");

  return NpyView{*type, header.shape, header.fortranOrder && header.shape.size() > 1 && !content.empty(), content};
}

Array toArray(const NpyView &view) {
  Array array = Array::zeros(view.dtype, view.shape);
  const std::byte *source = reinterpret_cast<const std::byte *>(view.data.data());
  if (view.fortranOrder)
    array.data = fromFortranOrder(source, array);
  else
    array.data.assign(source, source + view.data.size());
  return array;
}

Expected<Array> parseNpy(std::string_view bytes, const std::string &name) {
  Expected<NpyView> view = viewNpy(bytes, name);
  return view.ok() ? Expected<Array>(toArray(*view)) : view.status();
}

std::string npyHeader(const Array &array) {
  std::string shape;
  for (int64_t size : array.shape)
    shape += std::to_string(size) + ", ";
  if (array.shape.size() > 1)
    shape.resize(shape.size() - 2);
  else if (array.shape.size() == 1)
    shape.pop_back();
  std::string dict = std::string("{'descr': '") + descriptors[int(array.dtype)].text +
                     "', 'fortran_order': False, 'shape': (" + shape + "), }";
  // Data starts at a multiple of 64.
  size_t total = (10 + dict.size() + 1 + 63) / 64 * 64;
  dict.append(total - 10 - dict.size() - 1, ' ').push_back('\n');
  std::string header("\x93NUMPY\x01\x00", 8);
  header.push_back(char(dict.size() & 255));
  header.push_back(char(dict.size() >> 8));
  return header + dict;
}

Expected<Array> readNpy(const std::string &path) {
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file.ok())
    return file.status();
  return parseNpy(file->text(), "'" + path + "'");
}

Status writeNpy(const std::string &path, const Array &array) {
  Expected<AtomicFile> file = AtomicFile::create(path);
  if (!file.ok())
    return file.status();
  HPC_RETURN_IF_ERROR(file->write(npyHeader(array)));
  HPC_RETURN_IF_ERROR(file->write(array.data.data(), int64_t(array.data.size())));
  return file->commit();
}

} // namespace hpc
