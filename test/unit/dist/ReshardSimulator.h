// Runs the steps of a reshard on explicit elements. It knows only what each kind of step lets a rank see: its own
// elements, or those of the ranks that differ from it in the step's axes.
#pragma once

#include "BruteForce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace hpc::dist::brute {

/// What one rank has: for each element the contributions that are summed in it. A contribution is a coordinate on the
/// axes that were partial at the start.
using Contributions = std::multiset<std::vector<int64_t>>;
using Memory = std::map<int64_t, Contributions>;

class ReshardSimulator {
public:
  ReshardSimulator(const Sharding &from, const Mesh &mesh) : mesh(mesh), from(from) {
    for (int64_t rank = 0; rank < mesh.numCoordinates(); ++rank)
      for (int64_t element : box(from, mesh, mesh.coordinate(rank)))
        if (element >= 0)
          memoryOf(rank)[element] = {contribution(rank)};
    memory.resize(mesh.numCoordinates());
    held = boxes(from, mesh);
  }

  /// Empty when the step is legal, else what is wrong.
  std::string run(const ReshardStep &step) {
    if (Status status = verify(step.before, globalShape(from), mesh); !status.ok())
      return "before: " + status.message();
    if (Status status = verify(step.after, globalShape(from), mesh); !status.ok())
      return "after: " + status.message();
    if (boxes(step.before, mesh) != held)
      return "before is not what the last step left";
    if (std::string wrong = checkForm(step); !wrong.empty())
      return wrong;
    std::vector<Memory> next(memory.size());
    std::set<int64_t> sources;
    held = boxes(step.after, mesh);
    for (int64_t rank = 0; rank < int64_t(memory.size()); ++rank) {
      if (step.kind == ReshardStep::Permute) {
        int64_t source = indexOf(permuteSource(step, mesh, mesh.coordinate(rank)));
        if (!isPeer(rank, source, step.axes) || !sources.insert(source).second)
          return "not a permutation among peers";
        if (held[rank] != box(step.before, mesh, mesh.coordinate(source)))
          return "a permutation changes a box";
        next[rank] = memory[source];
        continue;
      }
      for (int64_t element : held[rank])
        if (element >= 0)
          if (std::string wrong = see(step, rank, element, next[rank]); !wrong.empty())
            return wrong;
    }
    memory = std::move(next);
    return "";
  }

  /// Every rank has its box of `to` in place, with each contribution exactly once.
  std::string check(const Sharding &to) {
    if (held != boxes(to, mesh))
      return "the boxes at the end are not the wanted ones";
    for (int64_t rank = 0; rank < int64_t(memory.size()); ++rank) {
      Contributions all;
      for (int64_t other = 0; other < int64_t(memory.size()); ++other)
        if (isPeer(rank, other, from.partial) && (isPeer(rank, other, resolved(to))))
          all.insert(contribution(other));
      for (int64_t element : held[rank])
        if (element >= 0 && memory[rank][element] != all)
          return "rank " + std::to_string(rank) + " has not each contribution once";
    }
    return "";
  }

private:
  Memory &memoryOf(int64_t rank) {
    if (int64_t(memory.size()) <= rank)
      memory.resize(rank + 1);
    return memory[rank];
  }

  std::vector<int64_t> contribution(int64_t rank) const {
    std::vector<int64_t> result;
    for (const std::string &axis : from.partial)
      result.push_back(mesh.coordinate(rank)[mesh.index(axis)]);
    return result;
  }

  std::vector<std::string> resolved(const Sharding &to) const {
    std::vector<std::string> result;
    for (const std::string &axis : from.partial)
      if (std::find(to.partial.begin(), to.partial.end(), axis) == to.partial.end())
        result.push_back(axis);
    return result;
  }

  int64_t indexOf(const std::vector<int64_t> &coordinate) const {
    int64_t index = 0;
    for (size_t a = 0; a < coordinate.size(); ++a)
      index = index * mesh.axes[a].size + coordinate[a];
    return index;
  }

  bool isPeer(int64_t a, int64_t b, const std::vector<std::string> &axes) const {
    for (size_t i = 0; i < mesh.axes.size(); ++i)
      if (mesh.coordinate(a)[i] != mesh.coordinate(b)[i] &&
          std::find(axes.begin(), axes.end(), mesh.axes[i].name) == axes.end())
        return false;
    return true;
  }

  /// What a rank gets to see of an element.
  std::string see(const ReshardStep &step, int64_t rank, int64_t element, Memory &result) const {
    if (step.kind == ReshardStep::Slice) {
      auto own = memory[rank].find(element);
      if (own == memory[rank].end())
        return "a slice needs an element that the rank does not hold";
      result[element] = own->second;
      return "";
    }
    bool reduces = step.kind == ReshardStep::AllReduce || step.kind == ReshardStep::Accumulate ||
                   step.kind == ReshardStep::ReduceScatter;
    int64_t terms = 1;
    for (const std::string &axis : step.axes)
      terms *= mesh.size(axis);
    int64_t holders = 0;
    for (int64_t peer = 0; peer < int64_t(memory.size()); ++peer) {
      if (!isPeer(rank, peer, step.axes))
        continue;
      auto theirs = memory[peer].find(element);
      if (theirs == memory[peer].end())
        continue;
      ++holders;
      result[element].insert(theirs->second.begin(), theirs->second.end());
    }
    if (holders != (reduces ? terms : 1))
      return "an element is held by " + std::to_string(holders) + " peers";
    return "";
  }

  /// That `after` is `before` with the axis taken or put where the step says, and nothing else.
  static std::string checkForm(const ReshardStep &step) {
    using Kind = ReshardStep::Kind;
    bool isSum = step.kind == Kind::AllReduce || step.kind == Kind::Accumulate;
    if (step.axes.empty() || (step.axes.size() != 1 && step.kind != Kind::Permute && !isSum))
      return "a step with " + std::to_string(step.axes.size()) + " axes";
    Sharding wanted = step.before;
    if (step.kind == Kind::Permute) {
      for (size_t d = 0; d < wanted.dims.size(); ++d) {
        if (wanted.dims[d].size() != step.after.dims[d].size())
          return "a permutation changes sub-dims";
        for (size_t s = 0; s < wanted.dims[d].size(); ++s)
          if (wanted.dims[d][s].size != step.after.dims[d][s].size)
            return "a permutation changes sub-dims";
      }
      return "";
    }
    if (step.kind == Kind::AllGather || step.kind == Kind::AllToAll) {
      std::vector<std::string> &axes = wanted.dims.at(step.fromDim).at(step.fromSub).axes;
      if (axes.empty() || axes.back() != step.axes[0])
        return "the axis is not the last of fromSub";
      axes.pop_back();
    }
    if (isSum || step.kind == Kind::ReduceScatter)
      for (const std::string &name : step.axes) {
        auto axis = std::find(wanted.partial.begin(), wanted.partial.end(), name);
        if (axis == wanted.partial.end())
          return "the axis is not partial";
        wanted.partial.erase(axis);
      }
    if (step.kind == Kind::Slice || step.kind == Kind::AllToAll || step.kind == Kind::ReduceScatter)
      wanted.dims.at(step.toDim).at(step.toSub).axes.push_back(step.axes[0]);
    return step.after == wanted ? "" : "after is not before with the axis moved";
  }

  const Mesh &mesh;
  Sharding from;
  std::vector<Memory> memory;
  std::vector<Box> held;
};

} // namespace hpc::dist::brute
