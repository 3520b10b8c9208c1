// Walks the fields of one message in protobuf's wire format, without a schema and without copies: protobuf itself only
// gives copies, and what is large must not be in memory twice.
// A field is `key = number << 3 | type`, then a varint (type 0), 8 bytes (1), a length and bytes (2) or 4 bytes (5).
#pragma once

#include <cstddef>
#include <cstdint>

namespace hpc::wire {

/// One field: `begin`..`end` are its bytes when type is 1, 2 or 5, `value` its number when type is 0.
struct Field {
  uint64_t number = 0, type = 0;
  uint64_t value = 0;
  int64_t first = 0; ///< where its key stands; the field ends at `last`
  int64_t begin = 0, end = 0, last = 0;
};

class Fields {
public:
  Fields(const std::byte *data, int64_t begin, int64_t end) : data(data), at(begin), end(end) {}

  bool next(Field &field) {
    uint64_t key, value;
    field.first = at;
    bool isRead = at < end && varint(key) && content(key, field, value);
    field.last = at;
    return isRead;
  }

  /// Whether all has been read, and nothing was malformed.
  bool atEnd() const { return at == end; }

private:
  bool content(uint64_t key, Field &field, uint64_t &value) {
    field.number = key >> 3;
    field.type = key & 7;
    switch (field.type) {
    case 0:
      return varint(field.value);
    case 1:
      return fixed(8, field);
    case 5:
      return fixed(4, field);
    case 2:
      if (!varint(value) || value > uint64_t(end - at))
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
  bool varint(uint64_t &value) {
    value = 0;
    for (int shift = 0; shift < 64 && at < end; shift += 7) {
      uint64_t byte = uint64_t(data[at++]);
      value |= (byte & 127) << shift;
      if (byte < 128)
        return true;
    }
    return false;
  }

  const std::byte *data;
  int64_t at, end;
};

} // namespace hpc::wire
