// The minimum cut between a source and a sink (Dinic 1970: blocking flows along shortest paths).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hpc {

class MinimumCut {
public:
  /// A capacity that a cut avoids wherever another one is possible.
  static constexpr int64_t unlimited = int64_t(1) << 60;

  explicit MinimumCut(size_t nodes) : edgesOf(nodes) {}
  void addEdge(size_t from, size_t to, int64_t capacity);
  /// By node: whether it is on the sink's side of the minimum cut that is nearest to the sink. Can be called once.
  std::vector<bool> sinkSide(size_t source, size_t sink);

private:
  struct Edge {
    size_t to;
    int64_t left; ///< capacity that is not used yet
  };
  bool findLevels(size_t source, size_t sink);
  int64_t push(size_t source, size_t sink);

  std::vector<Edge> edges;                  ///< edge i and its reverse i ^ 1
  std::vector<std::vector<size_t>> edgesOf; ///< by node
  std::vector<int> level;                   ///< by node: distance from the source
  std::vector<size_t> next;                 ///< by node: the first edge that may still carry flow
};

} // namespace hpc
