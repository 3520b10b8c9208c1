// All sources have had their exact shares after S samples: none is ever a whole sample ahead, and what they are behind adds up to 0.
#include "runtime/train/Blend.h"

#include <algorithm>
#include <numeric>

namespace hpc {

static Status blendUsage(const std::string &message) { return Status::error(ErrorKind::Usage, message); }

constexpr int64_t mostPeriod = int64_t(1) << 20;
constexpr int mostDigits = 9; ///< before and after the point; their products fit 64 bits

/// "0.25" in units of 10^-mostDigits; 0 where it is no number above 0 of so few digits.
static int64_t unitsOf(const std::string &text) {
  int64_t units = 0;
  int whole = 0, fraction = 0;
  bool isPast = false;
  for (char sign : text) {
    if (sign == '.' && !isPast) {
      isPast = true;
      continue;
    }
    int &digits = isPast ? fraction : whole;
    if (sign < '0' || sign > '9' || ++digits > mostDigits)
      return 0;
    units = units * 10 + (sign - '0');
  }
  for (; fraction < mostDigits; ++fraction)
    units *= 10;
  return units;
}

Expected<Blend> Blend::create(const std::vector<std::string> &weights) {
  Blend blend;
  int64_t divisor = 0;
  for (const std::string &weight : weights) {
    blend.shares.push_back(unitsOf(weight));
    if (blend.shares.back() == 0)
      return blendUsage("a weight is '" + weight + "', and must be a decimal number above 0, as 0.25, with at most 9 digits on each side of the point");
    divisor = std::gcd(divisor, blend.shares.back());
  }
  double sum = 0;
  for (int64_t &share : blend.shares) {
    share /= divisor;
    sum += double(share);
  }
  if (sum > double(mostPeriod))
    return blendUsage("the weights have so many digits that they come out even only after " + std::to_string(int64_t(sum)) + " samples; round them, so "
                      "that they do after " + std::to_string(mostPeriod));
  const int64_t period = int64_t(sum);
  for (std::vector<Place> *places : {&blend.first, &blend.further}) {
    std::vector<int64_t> taken(blend.shares.size(), 0);
    for (int64_t number = 0; number < period; ++number) {
      const int64_t reached = places == &blend.first ? std::max<int64_t>(number, 1) : number;
      size_t best = 0;
      int64_t mostBehind = INT64_MIN;
      for (size_t source = 0; source < taken.size(); ++source)
        if (const int64_t behind = blend.shares[source] * reached - period * taken[source]; behind > mostBehind) {
          mostBehind = behind;
          best = source;
        }
      places->push_back({uint32_t(best), uint32_t(taken[best]++)});
    }
  }
  return blend;
}

Blend::Sample Blend::at(int64_t number) const {
  const int64_t period = int64_t(first.size()), turn = number / period;
  const Place &place = (turn == 0 ? first : further)[size_t(number % period)];
  return {place.source, turn * shares[place.source] + place.index};
}

} // namespace hpc
