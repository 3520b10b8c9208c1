// Fields of a message as a tree: taken out, doubled, moved, exchanged for those of another file, their numbers and texts
// changed. Lengths are written anew.
#include "test/fuzz/Mutation.h"

#include <algorithm>
#include <vector>

namespace hpc::fuzz {
namespace {

struct Field {
  uint64_t number = 0, type = 0;
  uint64_t value = 0;        ///< of types 0, 1 and 5
  std::string content;       ///< of type 2, where it is no message
  std::vector<Field> fields; ///< of type 2, where it is one
};
using Fields = std::vector<Field>;

constexpr int deepest = 100;

class Parser {
public:
  explicit Parser(const std::string &bytes) : bytes(bytes) {}

  /// False where the bytes are no message, or none that anybody would write.
  bool parse(size_t end, Fields &fields, int depth) {
    while (at < end) {
      Field field;
      uint64_t key;
      if (!varint(end, key) || (field.number = key >> 3) == 0 || field.number > 100)
        return false;
      field.type = key & 7;
      if (field.type == 0 ? !varint(end, field.value) : !content(end, field, depth))
        return false;
      fields.push_back(std::move(field));
    }
    return true;
  }

private:
  bool varint(size_t end, uint64_t &value) {
    value = 0;
    for (int shift = 0; shift < 64 && at < end; shift += 7) {
      uint64_t byte = uint8_t(bytes[at++]);
      value |= (byte & 127) << shift;
      if (byte < 128)
        return true;
    }
    return false;
  }

  bool content(size_t end, Field &field, int depth) {
    if (field.type == 1 || field.type == 5) {
      size_t width = field.type == 1 ? 8 : 4;
      if (end - at < width)
        return false;
      for (size_t i = 0; i < width; ++i)
        field.value |= uint64_t(uint8_t(bytes[at + i])) << (8 * i);
      at += width;
      return true;
    }
    uint64_t length;
    if (field.type != 2 || !varint(end, length) || length > end - at)
      return false;
    size_t begin = at;
    if (length == 0 || depth == deepest || !parse(begin + length, field.fields, depth + 1)) {
      field.fields.clear();
      field.content = bytes.substr(begin, length);
    }
    at = begin + length;
    return true;
  }

  const std::string &bytes;
  size_t at = 0;
};

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7)
    bytes += char(value | 128);
  return bytes + char(value);
}

std::string serialized(const Fields &fields) {
  std::string bytes;
  for (const Field &field : fields) {
    bytes += varint(field.number << 3 | field.type);
    if (field.type == 0) {
      bytes += varint(field.value);
    } else if (field.type == 2) {
      std::string content = field.fields.empty() ? field.content : serialized(field.fields);
      bytes += varint(content.size()) + content;
    } else {
      for (int i = 0; i < (field.type == 1 ? 8 : 4); ++i)
        bytes += char(field.value >> (8 * i));
    }
  }
  return bytes;
}

/// Every field, with the list that it stands in.
struct Place {
  Fields *list;
  size_t index;
  Field &field() const { return (*list)[index]; }
};
void collect(Fields &fields, std::vector<Place> &places) {
  for (size_t i = 0; i < fields.size(); ++i) {
    places.push_back({&fields, i});
    collect(fields[i].fields, places);
  }
}

uint64_t interesting(uint64_t value, Random &random) {
  constexpr int64_t values[] = {0, 1, -1, 2, 3, 4, 5, 7, 8, 13, 17, 31, 64, 100, 255, 1000, 65535, 1 << 20, INT32_MAX,
                                INT32_MIN, int64_t(1) << 32, int64_t(1) << 53, int64_t(1) << 62, INT64_MAX, INT64_MIN};
  switch (random.below(4)) {
  case 0:
    return value + 1;
  case 1:
    return value - 1;
  case 2:
    return value ^ uint64_t(1) << random.below(64);
  default:
    return uint64_t(values[random.below(std::size(values))]);
  }
}

/// One of `places` that `isWanted` says yes to; null where there is none.
template <typename Wanted> const Place *find(const std::vector<Place> &places, Random &random, Wanted isWanted) {
  if (places.empty())
    return nullptr;
  size_t start = random.below(places.size());
  for (size_t i = 0; i < places.size(); ++i)
    if (const Place &place = places[(start + i) % places.size()]; isWanted(place.field()))
      return &place;
  return nullptr;
}

class Changes {
public:
  Changes(Fields &root, Fields &otherRoot, Mutation &mutation) : root(root), mutation(mutation) {
    collect(otherRoot, others);
  }

  void change() {
    std::vector<Place> places;
    collect(root, places);
    if (places.empty())
      return;
    const Place &place = places[mutation.random.below(places.size())];
    Field &field = place.field();
    auto at = place.list->begin() + std::ptrdiff_t(place.index);
    switch (mutation.random.below(8)) {
    case 0:
      place.list->erase(at);
      return;
    case 1: {
      Field copy = field;
      place.list->insert(place.list->begin() + std::ptrdiff_t(mutation.random.below(place.list->size() + 1)), copy);
      return;
    }
    case 2:
      std::swap(field, (*place.list)[mutation.random.below(place.list->size())]);
      return;
    case 3: { // the same field of another place or file: another node, another type, an input among the outputs
      const std::vector<Place> &source = mutation.chance(2) && !others.empty() ? others : places;
      if (const Place *found = find(source, mutation.random, [&](const Field &each) {
            return each.type == field.type && (each.number == field.number || mutation.chance(16));
          })) {
        Field copy = found->field(); // may hold `field`, or be within it
        uint64_t number = field.number;
        field = std::move(copy);
        field.number = number;
      }
      return;
    }
    case 4: // one more field of another file where its like stands
      if (const Place *found = find(others, mutation.random, [&](const Field &each) { return each.number == field.number; })) {
        Field copy = found->field();
        place.list->insert(at, std::move(copy));
      }
      return;
    default:
      changeValue(places, field);
    }
  }

private:
  void changeValue(const std::vector<Place> &places, Field &field) {
    if (field.type != 2) {
      field.value = interesting(field.value, mutation.random);
    } else if (field.fields.empty()) {
      // A text of elsewhere: a name that exists, an op, a type.
      const std::vector<Place> &source = mutation.chance(2) && !others.empty() ? others : places;
      const Place *text = find(source, mutation.random,
                               [&](const Field &each) { return each.type == 2 && each.fields.empty() && !each.content.empty(); });
      if (text && !mutation.chance(3))
        field.content = std::string(text->field().content);
      else if (!field.content.empty())
        mutation.changeBytes(field.content);
    } else if (mutation.chance(8)) {
      field.number = 1 + mutation.random.below(30);
    } else {
      change(); // of a message there is nothing of its own to change
    }
  }

  Fields &root;
  std::vector<Place> others;
  Mutation &mutation;
};

} // namespace

bool mutateProtobuf(std::string &bytes, Mutation &mutation) {
  Fields fields, others;
  if (bytes.empty() || !Parser(bytes).parse(bytes.size(), fields, 0))
    return false;
  if (!Parser(mutation.other).parse(mutation.other.size(), others, 0))
    others.clear();
  Changes changes(fields, others, mutation);
  for (uint64_t count = 1 + mutation.random.below(4); count > 0; --count)
    changes.change();
  bytes = serialized(fields);
  return true;
}

} // namespace hpc::fuzz
