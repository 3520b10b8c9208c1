// The text of an id depends on the ids before it (SentencePiece's spaces, characters in several tokens), so ids are decoded together with
// those that brought the last text, and the difference is new.
#include "runtime/generate/TextStream.h"

#include <algorithm>

namespace hpc::generate {

namespace {

struct Character {
  size_t length;  ///< bytes, at least 1
  bool isValid;
  bool isPartial; ///< more bytes could complete it
};

/// At the beginning of `text`, which is not empty. Table 3-7 of The Unicode Standard.
Character firstCharacter(std::string_view text) {
  const auto lead = uint8_t(text[0]);
  if (lead < 0x80)
    return {1, true, false};
  const size_t length = lead >= 0xC2 && lead <= 0xDF ? 2 : lead >= 0xE0 && lead <= 0xEF ? 3 : lead >= 0xF0 && lead <= 0xF4 ? 4 : 1;
  if (length == 1)
    return {1, false, false};
  uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80, high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF; // of the second byte
  for (size_t at = 1; at < length; ++at, low = 0x80, high = 0xBF) {
    if (at == text.size())
      return {at, false, true};
    if (uint8_t(text[at]) < low || uint8_t(text[at]) > high)
      return {at, false, false};
  }
  return {length, true, false};
}

constexpr std::string_view replacement = "\xEF\xBF\xBD";

bool endsWithin(std::string_view text) {
  for (Character next{}; !text.empty(); text.remove_prefix(next.length)) {
    next = firstCharacter(text);
    if (next.isPartial)
      return true;
  }
  return false;
}

bool endsWith(std::string_view text, std::string_view end) { return text.size() >= end.size() && text.substr(text.size() - end.size()) == end; }

} // namespace

std::string validUtf8(std::string_view text) {
  std::string valid;
  for (Character next{}; !text.empty(); text.remove_prefix(next.length)) {
    next = firstCharacter(text);
    valid += next.isValid ? text.substr(0, next.length) : replacement;
  }
  return valid;
}

/// Ids of the prompt that are decoded with the first ids of an answer.
constexpr size_t mostContext = 6;
/// Tokens of SentencePiece that may be the bytes of one character; its decoder writes U+FFFD until all are there.
constexpr size_t mostBytes = 4;

TextStream::TextStream(const text::Tokenizer &tokenizer, std::vector<int32_t> prompt, std::vector<std::string> stops)
    : tokenizer(tokenizer), stops(std::move(stops)), window(prompt.end() - std::ptrdiff_t(std::min(prompt.size(), mostContext)), prompt.end()),
      known(window.size()) {}

Expected<std::string> TextStream::add(int64_t id) {
  if (tokenizer.decode({int32_t(id)}).ok())
    window.push_back(int32_t(id));
  else
    ++unknown;
  return take(/*isLast=*/false);
}

Expected<std::string> TextStream::finish() { return take(/*isLast=*/true); }

Expected<std::string> TextStream::take(bool isLast) {
  if (stopped)
    return std::string();
  Expected<std::string> before = tokenizer.decode({window.begin(), window.begin() + std::ptrdiff_t(known)}), all = tokenizer.decode(window);
  HPC_RETURN_IF_ERROR(before.status());
  HPC_RETURN_IF_ERROR(all.status());
  const std::string_view fresh = std::string_view(*all).substr(std::min(before->size(), all->size()));
  const bool mayChange = endsWithin(fresh) || (endsWith(fresh, replacement) && window.size() - known < mostBytes);
  if (isLast || !mayChange) {
    held += validUtf8(fresh);
    window.erase(window.begin(), window.begin() + std::ptrdiff_t(known));
    known = window.size();
  }
  size_t end = std::string::npos;
  for (const std::string &stop : stops)
    end = std::min(end, held.find(stop));
  stopped = end != std::string::npos;
  if (!stopped) {
    end = held.size();
    for (const std::string &stop : stops) // the longest end of the text that may begin it
      for (size_t length = isLast ? 0 : std::min(stop.size() - 1, held.size()); length > 0; --length)
        if (endsWith(held, std::string_view(stop).substr(0, length))) {
          end = std::min(end, held.size() - length);
          break;
        }
  }
  std::string certain = held.substr(0, end);
  held.erase(0, end);
  shown += certain;
  return certain;
}

} // namespace hpc::generate
