// Walks the fields of one message in protobuf's wire format, without a schema and without copies: protobuf itself only
// gives copies, and a plan refers to the bytes of weights where they are.
// A field is `key = number << 3 | type`, then a varint (type 0), 8 bytes (1), a length and bytes (2) or 4 bytes (5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hpc::onnx {

/// One field: `begin`..`end` are its bytes when type is 2, `value` its number when type is 0.
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
      return skip(8);
    case 5:
      return skip(4);
    case 2:
      if (!varint(value) || value > uint64_t(end - at))
        return false;
      field.begin = at;
      field.end = at += int64_t(value);
      return true;
    }
    return false;
  }

  bool skip(int64_t bytes) {
    at += bytes;
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

/// Where an initializer's elements are stored verbatim (raw_data, or one packed run of floats or doubles); offset -1:
/// nowhere.
struct StoredBytes {
  int64_t offset = -1, bytes = 0;
};

/// One entry per initializer of the main graph, in file order. Stops quietly at malformed input: the caller compares
/// the count.
std::vector<StoredBytes> scanInitializers(const std::byte *data, int64_t size);

/// The model without the stored bytes of its larger initializers, whose fields stay, empty: protobuf would copy them.
/// "" where that spares less than half of the file, or where it is malformed.
std::string withoutStoredBytes(const std::byte *data, int64_t size);

/// About how many bytes protobuf's and our structs of a model take: a field of two bytes may become a struct of hundreds.
int64_t footprintOf(const std::byte *data, int64_t size);

} // namespace hpc::onnx
