#include "runtime/cost/Machine.h"

#include <algorithm>
#include <cmath>

namespace hpc::cost {

int64_t Machine::memoryOf(int64_t first, int64_t count) const {
  int64_t least = 0;
  for (int64_t rank = first; rank < first + count; ++rank) {
    int64_t own = memory;
    for (const HostDifference &each : differences)
      if (each.memory && each.firstRank <= rank && rank < each.firstRank + each.ranks)
        own = each.memory;
    if (own && (!least || own < least))
      least = own;
  }
  return least;
}

const ProductSpeed &Machine::speedOf(DType type) const {
  auto found = std::find_if(products.begin(), products.end(), [&](const ProductSpeed &each) { return each.type == type; });
  return found == products.end() ? products.front() : *found;
}

static double shareOf(const std::vector<Efficiency> &points, double size) {
  if (points.empty())
    return 1;
  auto above = std::find_if(points.begin(), points.end(), [&](const Efficiency &point) { return double(point.least) >= size; });
  if (above == points.begin())
    return points.front().share;
  if (above == points.end())
    return points.back().share;
  const Efficiency &below = *(above - 1);
  const double part = std::log(size / double(below.least)) / std::log(double(above->least) / double(below.least));
  return below.share + part * (above->share - below.share);
}

double Machine::productSeconds(DType type, double m, double n, double k) const {
  const ProductSpeed &speed = speedOf(type);
  return 2 * m * n * k / (speed.flops * shareOf(speed.efficiency, std::min({m, n, k})));
}

const Link &Machine::linkOf(int64_t first, int64_t span) const {
  for (const Link &link : links)
    if (link.ranks == 0 || first / link.ranks == (first + span - 1) / link.ranks)
      return link;
  return links.back();
}

double Machine::reachedFlops(DType type) const {
  const ProductSpeed &speed = speedOf(type);
  return speed.efficiency.empty() ? speed.flops : speed.flops * speed.efficiency.back().share;
}

int64_t Machine::bytesOfLatency(size_t index) const {
  const Link &link = links[index];
  double shortest = link.start + link.latency;
  for (const Protocol &other : link.others)
    shortest = std::min(shortest, other.start + other.latency);
  return int64_t(shortest * link.bytesPerSecond + 0.5);
}

} // namespace hpc::cost
