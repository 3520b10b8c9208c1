// Bytes of the rendezvous: numbers and texts in little endian, and frames of `length, type, payload`.
// A reader never reads beyond the received bytes: every length is checked against them, and against a limit.
#pragma once

#include "runtime/base/Status.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace hpc::launch {

class WireWriter {
public:
  void number(uint64_t value, int bytes = 8) {
    for (int i = 0; i < bytes; ++i)
      content += char(value >> (8 * i) & 0xff);
  }
  void text(std::string_view value) {
    number(value.size(), 4);
    content += value;
  }
  void status(const Status &value) {
    constexpr size_t longest = 32 << 10;
    number(value.ok() ? 0 : uint64_t(value.kind()) + 1, 1);
    text(value.ok() ? std::string_view() : std::string_view(value.message()).substr(0, longest));
  }

  std::string content;
};

/// Returns zeros and empty texts after the first missing byte; ok() is then false.
class WireReader {
public:
  explicit WireReader(std::string_view content) : rest(content) {}

  uint64_t number(int bytes = 8) {
    uint64_t value = 0;
    if (!has(size_t(bytes)))
      return 0;
    for (int i = 0; i < bytes; ++i)
      value |= uint64_t(uint8_t(rest[size_t(i)])) << (8 * i);
    rest.remove_prefix(size_t(bytes));
    return value;
  }
  std::string text() {
    uint64_t size = number(4);
    if (!has(size))
      return {};
    std::string value(rest.substr(0, size));
    rest.remove_prefix(size);
    return value;
  }
  Status status() {
    uint64_t kind = number(1);
    std::string message = text();
    if (kind == 0 || kind > uint64_t(ErrorKind::Internal) + 1)
      return Status::success();
    return Status::error(ErrorKind(kind - 1), std::move(message));
  }
  /// Whether all bytes were there; atEnd also requires that none are left.
  bool ok() const { return good; }
  bool atEnd() const { return good && rest.empty(); }

private:
  bool has(size_t bytes) {
    good &= bytes <= rest.size();
    return good;
  }
  std::string_view rest;
  bool good = true;
};

enum class FrameType : uint8_t {
  Proof,     ///< of the secret, by the rendezvous
  Refused,   ///< a text: why this process may not join
  Welcome,   ///< a status, then everybody's introduction
  Heartbeat, ///< whether ranks of this process are in a step, whether one waits for its device, and their progress
  Failed,    ///< a status: a rank has failed; the step is over, the processes live
  Lost,      ///< a status: a process has vanished; there will be no other step
  Done,      ///< a status and an answer: the ranks of this process are done with the step
  Verdict,   ///< a status and an answer: those of all processes
  Goodbye,   ///< the process ends in order
  Text,      ///< a text that all processes shall have
  Texts,     ///< the texts of all processes, by process
  Ask,       ///< nothing: where are the ranks of this process?
  Positions, ///< of each rank: its number, whether it waits, a text
};

constexpr size_t frameHead = 5;

inline std::string frame(FrameType type, std::string_view payload = {}) {
  WireWriter writer;
  writer.number(payload.size(), 4);
  writer.number(uint64_t(type), 1);
  return writer.content + std::string(payload);
}

struct Frame {
  FrameType type;
  std::string payload;
};

enum class FrameState { Incomplete, Complete, TooLong };

/// Takes the first frame out of the received bytes.
inline FrameState takeFrame(std::string &received, size_t limit, Frame &taken) {
  if (received.size() < frameHead)
    return FrameState::Incomplete;
  WireReader reader(received);
  size_t length = reader.number(4);
  taken.type = FrameType(reader.number(1));
  if (length > limit)
    return FrameState::TooLong;
  if (received.size() < frameHead + length)
    return FrameState::Incomplete;
  taken.payload = received.substr(frameHead, length);
  received.erase(0, frameHead + length);
  return FrameState::Complete;
}

} // namespace hpc::launch
