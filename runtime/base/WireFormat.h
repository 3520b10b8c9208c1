// Reads and writes messages in protobuf's wire format. Reading walks the fields of one message without a schema and
// without copies: protobuf itself only returns copies, and large fields must not be in memory twice.
// A field is `key = number << 3 | type`, then a varint (type 0), 8 bytes (1), a length and bytes (2) or 4 bytes (5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace hpc::wire {

constexpr uint64_t varintType = 0, fixedType = 1, bytesType = 2;

/// One after the other: the numbers of a packed run.
class Varints {
public:
  Varints(const std::byte *data, int64_t begin, int64_t end) : data(data), at(begin), end(end) {}

  bool next(uint64_t &value) {
    const int64_t first = at;
    value = 0;
    for (int shift = 0; shift < 64 && at < end; shift += 7) {
      uint64_t byte = uint64_t(data[at++]);
      value |= (byte & 127) << shift;
      if (byte < 128)
        return true;
    }
    at = first;
    return false;
  }

  /// Whether all has been read, and nothing was malformed.
  bool atEnd() const { return at == end; }

protected:
  const std::byte *data;
  int64_t at, end;
};

/// One field: `begin`..`end` are its bytes when type is 1, 2 or 5, `value` its number when type is 0.
struct Field {
  uint64_t number = 0, type = 0;
  uint64_t value = 0;
  int64_t first = 0; ///< the position of its key; the field ends at `last`
  int64_t begin = 0, end = 0, last = 0;
};

class Fields : private Varints {
public:
  using Varints::Varints, Varints::atEnd;

  bool next(Field &field) {
    uint64_t key, value;
    field.first = at;
    if (at == end || !Varints::next(key) || !content(key, field, value)) {
      at = field.first;
      return false;
    }
    field.last = at;
    return true;
  }

private:
  bool content(uint64_t key, Field &field, uint64_t &value) {
    field.number = key >> 3;
    field.type = key & 7;
    switch (field.type) {
    case 0:
      return Varints::next(field.value);
    case 1:
      return fixed(8, field);
    case 5:
      return fixed(4, field);
    case 2:
      if (!Varints::next(value) || value > uint64_t(end - at))
        return false;
      field.begin = at;
      field.end = at += int64_t(value);
      return true;
    }
    return false;
  }

  bool fixed(int64_t bytes, Field &field) {
    field.begin = at;
    field.end = at += bytes;
    return at <= end;
  }
};

/// Adds a message {1: key, 2: value} of texts, as the fields of a map are.
inline void takeTextEntry(const std::byte *data, const Field &message, std::map<std::string, std::string> &entries) {
  std::string key, value;
  Fields inner(data, message.begin, message.end);
  for (Field each; inner.next(each);)
    if (each.type == bytesType && (each.number == 1 || each.number == 2))
      (each.number == 1 ? key : value).assign(reinterpret_cast<const char *>(data + each.begin), size_t(each.end - each.begin));
  entries[key] = value;
}

/// The numbers of sint64: 0, -1, 1, -2, ... in few bits.
inline uint64_t zigzag(int64_t value) { return uint64_t(value) << 1 ^ uint64_t(value >> 63); }
inline int64_t fromZigzag(uint64_t value) { return int64_t(value >> 1 ^ (0 - (value & 1))); }

inline void appendVarint(uint64_t value, std::string &out) {
  for (; value >= 128; value >>= 7)
    out += char(value | 128);
  out += char(value);
}
inline std::string varint(uint64_t value) {
  std::string bytes;
  appendVarint(value, bytes);
  return bytes;
}

} // namespace hpc::wire
