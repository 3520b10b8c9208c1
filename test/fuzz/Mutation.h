// Changes that damage and malice make to a file: of its bytes, or of what they say with everything around it put right again.
// Lengths, hashes and checksums are made anew, so that what is changed gets past the first check of a reader.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace hpc::fuzz {

struct Random {
  uint64_t state = 88172645463325252;
  uint64_t below(uint64_t end) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % end;
  }
};

/// What a file's bytes are made of.
enum class Format {
  Protobuf,    ///< fields, without a schema: what parses as a message is taken for one
  Json,        ///< tokens and whole values
  SafeTensors, ///< a length, JSON, bytes
  Archive,     ///< members of a zip archive, with their checksums
};

/// Where changes come from: chances, another file to take pieces of, and one more way to change bytes (a fuzzer's own).
struct Mutation {
  Random &random;
  const std::string &other;
  std::function<void(std::string &)> changeBytes;

  bool chance(uint64_t oneIn) { return random.below(oneIn) == 0; }
};

/// Flipped bits, cuts, repetitions, extreme numbers, pieces of the other file: one to three of them.
void changeBytes(std::string &bytes, const std::string &other, Random &random);

/// One to four changes of what the bytes say; of the bytes where they are not of that format.
std::string mutated(const std::string &bytes, Format format, Mutation &mutation);

// ---- by format; false where the bytes are not of it ----------------------------------------------
bool mutateProtobuf(std::string &bytes, Mutation &mutation);
bool mutateJson(std::string &text, Mutation &mutation);
bool mutateSafeTensors(std::string &bytes, Mutation &mutation);
bool mutateArchive(std::string &bytes, Mutation &mutation);

} // namespace hpc::fuzz
