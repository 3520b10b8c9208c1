// The text form of meshes and shardings, both ways: `mb=2:time, tp=2:tensor` and `[4@mb, 33, (3, 5@tp, 8)] partial{tp}`.
// Printed text parses to an equal value, except that a dim `1` is always the empty list.
#include "compiler/Dialect/Dist/Sharding.h"
#include "compiler/Dialect/Dist/ShardingSeed.h"

#include <algorithm>
#include <cctype>
#include <limits>

namespace hpc::dist {

// ---- printing -----------------------------------------------------------------------------------

static std::string join(const std::vector<std::string> &parts) {
  std::string text;
  for (const std::string &part : parts)
    text += (text.empty() ? "" : ", ") + part;
  return text;
}

static std::string toString(const SubDim &sub) {
  std::string text = std::to_string(sub.size);
  if (sub.axes.size() == 1)
    text += "@" + sub.axes[0];
  if (sub.axes.size() > 1)
    text += "@(" + join(sub.axes) + ")";
  return text;
}

std::string toString(const DimSharding &dim) {
  if (dim.empty())
    return "1";
  if (dim.size() == 1)
    return toString(dim[0]);
  std::vector<std::string> subs;
  for (const SubDim &sub : dim)
    subs.push_back(toString(sub));
  return "(" + join(subs) + ")";
}

std::string toString(const Sharding &sharding) {
  std::vector<std::string> dims;
  for (const DimSharding &dim : sharding.dims)
    dims.push_back(toString(dim));
  return "[" + join(dims) + "]" + (sharding.partial.empty() ? "" : " partial{" + join(sharding.partial) + "}");
}

std::string shardingText(const Seed &seed) {
  std::vector<std::string> dims;
  for (size_t d = 0; d < seed.sharding.dims.size(); ++d)
    dims.push_back(toString(seed.sharding.dims[d]) + (seed.open[d] ? "?" : ""));
  return "[" + join(dims) + "]";
}

std::string toString(const Mesh &mesh) {
  std::vector<std::string> axes;
  for (const Mesh::Axis &axis : mesh.axes)
    axes.push_back(axis.name + "=" + std::to_string(axis.size) + ":" + name(axis.role));
  return join(axes);
}

// ---- parsing ------------------------------------------------------------------------------------

namespace {

/// Reads tokens from left to right. The first failure is kept; every read after it does nothing.
class Reader {
public:
  explicit Reader(std::string_view text) : text(text) {}

  bool failed() const { return !message.empty(); }
  bool atEnd() { return skipSpace(), at == text.size(); }
  bool peek(char c) { return skipSpace(), at < text.size() && text[at] == c; }
  bool take(char c) { return !failed() && peek(c) && ++at; }

  void expect(char c) {
    if (!take(c))
      fail(std::string("expected '") + c + "'");
  }

  int64_t number() {
    skipSpace();
    size_t start = at;
    int64_t value = 0;
    for (; at < text.size() && std::isdigit((unsigned char)text[at]); ++at) {
      int64_t digit = text[at] - '0';
      if (value > (std::numeric_limits<int64_t>::max() - digit) / 10)
        return fail("the number is too large"), 0;
      value = value * 10 + digit;
    }
    if (at == start)
      fail("expected a number");
    return value;
  }

  std::string name() {
    skipSpace();
    size_t start = at;
    auto isNameChar = [&](char c) {
      return std::isalpha((unsigned char)c) || c == '_' || (at > start && (std::isdigit((unsigned char)c) || c == '.'));
    };
    while (at < text.size() && isNameChar(text[at]))
      ++at;
    if (at == start)
      fail("expected the name of a mesh axis");
    return std::string(text.substr(start, at - start));
  }

  bool takeWord(std::string_view word) {
    skipSpace();
    if (failed() || text.substr(at, word.size()) != word)
      return false;
    at += word.size();
    return true;
  }

  void fail(const std::string &what) {
    if (!failed())
      message = what + " at column " + std::to_string(at + 1);
  }

  Status error(ErrorKind kind, const char *noun, const char *example) {
    return Status::error(kind, std::string(noun) + " '" + std::string(text) + "': " + message + "; write it like '" +
                                   example + "'");
  }

private:
  void skipSpace() {
    while (at < text.size() && std::isspace((unsigned char)text[at]))
      ++at;
  }

  std::string_view text;
  size_t at = 0;
  std::string message;
};

} // namespace

static SubDim readSubDim(Reader &reader) {
  SubDim sub;
  sub.size = reader.number();
  if (!reader.take('@'))
    return sub;
  if (!reader.take('(')) {
    sub.axes.push_back(reader.name());
    return sub;
  }
  do
    sub.axes.push_back(reader.name());
  while (reader.take(','));
  reader.expect(')');
  return sub;
}

static DimSharding readDim(Reader &reader) {
  DimSharding dim;
  if (!reader.take('(')) {
    dim.push_back(readSubDim(reader));
    if (dim[0] == SubDim())
      dim.clear();
    return dim;
  }
  do
    dim.push_back(readSubDim(reader));
  while (reader.take(','));
  reader.expect(')');
  if (!fitsInt64(dim))
    reader.fail("the sub-dims of a dim multiply to more than 2^63 - 1");
  return dim;
}

/// `[...]`; with `open`, every dim may end in a question mark.
static std::vector<DimSharding> readDims(Reader &reader, std::vector<bool> *open = nullptr) {
  std::vector<DimSharding> dims;
  reader.expect('[');
  if (reader.take(']'))
    return dims;
  do {
    dims.push_back(readDim(reader));
    if (!open)
      continue;
    open->push_back(reader.take('?'));
    if (open->back() && isCut(dims.back()))
      reader.fail("a dim that the seed cuts is closed");
  } while (reader.take(','));
  reader.expect(']');
  return dims;
}

Expected<Seed> parseSeedSharding(std::string_view text) {
  Reader reader(text);
  Seed seed;
  seed.sharding.dims = readDims(reader, &seed.open);
  if (!reader.atEnd())
    reader.fail("unexpected text");
  if (reader.failed())
    return reader.error(ErrorKind::Sidecar, "seed", "[4@dp, 33?, (3, 5@tp, 8)]");
  return seed;
}

Expected<Sharding> parseSharding(std::string_view text) {
  Reader reader(text);
  Sharding sharding;
  sharding.dims = readDims(reader);
  if (reader.takeWord("partial")) {
    reader.expect('{');
    do
      sharding.partial.push_back(reader.name());
    while (reader.take(','));
    reader.expect('}');
    std::sort(sharding.partial.begin(), sharding.partial.end());
  }
  if (!reader.atEnd())
    reader.fail("unexpected text");
  if (reader.failed())
    return reader.error(ErrorKind::Sidecar, "sharding", "[4@dp, 33, (3, 5@tp, 8)] partial{sp}");
  return sharding;
}

static AxisRole readRole(Reader &reader, const std::string &axis) {
  if (reader.take(':'))
    for (AxisRole role :
         {AxisRole::Time, AxisRole::Data, AxisRole::Tensor, AxisRole::Sequence, AxisRole::Pipeline})
      if (reader.takeWord(name(role)))
        return role;
  reader.fail("axis '" + axis + "' needs a role: time, data, tensor, sequence or pipeline");
  return AxisRole::Tensor;
}

Expected<Mesh> parseMesh(std::string_view text) {
  Reader reader(text);
  Mesh mesh;
  if (!reader.atEnd()) {
    do {
      Mesh::Axis axis;
      axis.name = reader.name();
      reader.expect('=');
      axis.size = reader.number();
      if (axis.size < 1)
        reader.fail("axis '" + axis.name + "' has size " + std::to_string(axis.size) + ", the least is 1");
      axis.role = readRole(reader, axis.name);
      if (mesh.index(axis.name) >= 0)
        reader.fail("axis '" + axis.name + "' is given twice");
      mesh.axes.push_back(std::move(axis));
    } while (reader.take(','));
    if (!reader.atEnd())
      reader.fail("unexpected text");
  }
  if (reader.failed())
    return reader.error(ErrorKind::Usage, "mesh", "mb=2:time, dp=1:data, tp=2:tensor");
  return mesh;
}

} // namespace hpc::dist
