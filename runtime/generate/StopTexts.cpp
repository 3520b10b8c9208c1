#include "runtime/generate/StopTexts.h"

#include <algorithm>

namespace hpc::generate {

/// Where the first of the texts begins that ends after `from` bytes; npos without one.
static size_t firstStop(const std::string &text, const std::vector<std::string> &stops, size_t from) {
  size_t first = std::string::npos;
  for (const std::string &stop : stops)
    first = std::min(first, text.find(stop, from >= stop.size() ? from - stop.size() + 1 : 0));
  return first;
}

bool StopTexts::endWith(const std::vector<int64_t> &newTokens) const {
  size_t longest = 0;
  for (const std::string &text : texts)
    longest = std::max(longest, text.size());
  if (longest == 0 || newTokens.empty())
    return false;
  // The tokens before the last, as many as have the bytes that a text needs beside one byte of the last; a token may have no byte at all.
  const auto last = newTokens.end() - 1;
  auto first = last;
  std::string before;
  while (first != newTokens.begin() && before.size() + 1 < longest) {
    first -= std::min<int64_t>(first - newTokens.begin(), int64_t(longest - 1 - before.size()));
    before = decode({first, last});
  }
  return firstStop(decode({first, newTokens.end()}), texts, before.size()) != std::string::npos;
}

std::string StopTexts::cut(const std::string &text) const { return text.substr(0, firstStop(text, texts, 0)); }

} // namespace hpc::generate
