// Paths are walked with a stack of edges, since they are as long as the program.
#include "passes/Recompute/MinimumCut.h"

#include <algorithm>

namespace hpc {

void MinimumCut::addEdge(size_t from, size_t to, int64_t capacity) {
  edgesOf[from].push_back(edges.size());
  edges.push_back({to, capacity});
  edgesOf[to].push_back(edges.size());
  edges.push_back({from, 0});
}

bool MinimumCut::findLevels(size_t source, size_t sink) {
  level.assign(edgesOf.size(), -1);
  level[source] = 0;
  std::vector<size_t> open{source};
  for (size_t i = 0; i < open.size(); ++i)
    for (size_t number : edgesOf[open[i]])
      if (const Edge &edge = edges[number]; edge.left > 0 && level[edge.to] < 0) {
        level[edge.to] = level[open[i]] + 1;
        open.push_back(edge.to);
      }
  return level[sink] >= 0;
}

/// Sends as much flow as possible along one shortest path; returns 0 where no path is left.
int64_t MinimumCut::push(size_t source, size_t sink) {
  std::vector<size_t> path;
  size_t at = source;
  while (at != sink) {
    bool advanced = false;
    for (; next[at] < edgesOf[at].size(); ++next[at]) {
      const Edge &edge = edges[edgesOf[at][next[at]]];
      if (edge.left > 0 && level[edge.to] == level[at] + 1) {
        path.push_back(edgesOf[at][next[at]]);
        at = edge.to;
        advanced = true;
        break;
      }
    }
    if (advanced)
      continue;
    if (path.empty())
      return 0;
    at = edges[path.back() ^ 1].to; // a dead end
    ++next[at];
    path.pop_back();
  }
  int64_t most = unlimited;
  for (size_t number : path)
    most = std::min(most, edges[number].left);
  for (size_t number : path) {
    edges[number].left -= most;
    edges[number ^ 1].left += most;
  }
  return most;
}

std::vector<bool> MinimumCut::sinkSide(size_t source, size_t sink) {
  while (findLevels(source, sink)) {
    next.assign(edgesOf.size(), 0);
    while (push(source, sink) > 0) {
    }
  }
  // Nodes that can still reach the sink, backwards.
  std::vector<bool> side(edgesOf.size(), false);
  side[sink] = true;
  std::vector<size_t> open{sink};
  for (size_t i = 0; i < open.size(); ++i)
    for (size_t number : edgesOf[open[i]]) {
      size_t from = edges[number].to; // edge number ^ 1 leads from there to here
      if (edges[number ^ 1].left > 0 && !side[from]) {
        side[from] = true;
        open.push_back(from);
      }
    }
  return side;
}

} // namespace hpc
