// Plans the steps from one sharding to another: partial sums, then slice, permute, all-to-all and gather until nothing
// is left.
//
// Invariant: a dim is *matched* once current and goal are written over the same sub-dims. Of a matched sub-dim the axes
// that both begin with are right and stay; every step makes a right axis more or a wrong one less, so the loop ends. A
// dim that cannot be matched (120@tp to (3, 5@tp, 8)) has wrong axes only; it loses them until it can be, at the latest
// when it is uncut.
#include "compiler/Dialect/Dist/ReshardPermute.h"
#include "compiler/Dialect/Dist/ReshardRefine.h"

#include <algorithm>
#include <optional>

namespace hpc::dist {

namespace {

struct SubDimAt {
  int dim, sub;
};

class Planner {
public:
  Planner(const Sharding &from, const Sharding &to, const Mesh &mesh)
      : mesh(mesh), current(from), goal(to), matched(from.dims.size(), false) {
    match();
  }

  void run() {
    while (resolvePartial()) {
    }
    while (slice() || permute() || allToAll() || gather())
      match();
  }

  std::vector<ReshardStep> steps;
  bool done() const { return normalize(current, mesh) == normalize(goal, mesh); }

private:
  std::vector<std::string> &axesAt(SubDimAt at) { return current.dims[at.dim][at.sub].axes; }

  void match() {
    for (size_t d = 0; d < matched.size(); ++d)
      matched[d] = matched[d] || refine(current.dims[d], goal.dims[d], mesh);
  }

  std::vector<SubDimAt> places() const {
    std::vector<SubDimAt> result;
    for (int d = 0; d < int(current.dims.size()); ++d)
      for (int s = 0; s < int(current.dims[d].size()); ++s)
        result.push_back({d, s});
    return result;
  }

  /// How many axes of a sub-dim are right.
  size_t numRight(SubDimAt at) const {
    if (!matched[at.dim])
      return 0;
    const std::vector<std::string> &has = current.dims[at.dim][at.sub].axes, &wants = goal.dims[at.dim][at.sub].axes;
    return std::mismatch(has.begin(), has.end(), wants.begin(), wants.end()).first - has.begin();
  }

  bool hasWrong(SubDimAt at) const { return numRight(at) < current.dims[at.dim][at.sub].axes.size(); }

  /// The axis that may cut a sub-dim next: all that cut it are right, and the goal has one more.
  std::optional<std::string> nextAxis(SubDimAt at) const {
    if (!matched[at.dim] || hasWrong(at) || numRight(at) == goal.dims[at.dim][at.sub].axes.size())
      return std::nullopt;
    return goal.dims[at.dim][at.sub].axes[numRight(at)];
  }

  std::optional<SubDimAt> roomFor(const std::string &axis) const {
    for (SubDimAt at : places())
      if (nextAxis(at) == axis)
        return at;
    return std::nullopt;
  }

  /// An axis that is still partial here stays so, and the goal cannot cut with it.
  bool isFree(const std::string &axis) const {
    std::vector<std::string> used = cutAxes(current);
    return std::find(used.begin(), used.end(), axis) == used.end();
  }

  ReshardStep begin(ReshardStep::Kind kind, std::vector<std::string> axes) const {
    ReshardStep step;
    step.kind = kind;
    step.axes = std::move(axes);
    step.before = current;
    return step;
  }
  bool end(ReshardStep step) {
    step.after = current;
    steps.push_back(std::move(step));
    return true;
  }
  void takeFrom(ReshardStep &step, SubDimAt from) {
    step.fromDim = from.dim;
    step.fromSub = from.sub;
    axesAt(from).pop_back();
  }
  void putOn(ReshardStep &step, SubDimAt to) {
    step.toDim = to.dim;
    step.toSub = to.sub;
    axesAt(to).push_back(step.axes[0]);
  }

  // Each of these makes one step, or returns false when there is none of its kind.

  bool resolvePartial() {
    std::vector<std::string> axes;
    std::set_difference(current.partial.begin(), current.partial.end(), goal.partial.begin(), goal.partial.end(),
                        std::back_inserter(axes));
    if (axes.empty())
      return false;
    auto drop = [&](const std::string &axis) {
      current.partial.erase(std::find(current.partial.begin(), current.partial.end(), axis));
    };
    // Over time first: what moves data is then done once a step.
    if (std::vector<std::string> time = axesWithRole(axes, mesh, AxisRole::Time); !time.empty()) {
      ReshardStep step = begin(ReshardStep::Accumulate, time);
      std::for_each(time.begin(), time.end(), drop);
      return end(step);
    }
    for (const std::string &axis : axes)
      if (std::optional<SubDimAt> to = roomFor(axis)) {
        ReshardStep step = begin(ReshardStep::ReduceScatter, {axis});
        drop(axis);
        putOn(step, *to);
        return end(step);
      }
    ReshardStep step = begin(ReshardStep::AllReduce, axes);
    std::for_each(axes.begin(), axes.end(), drop);
    return end(step);
  }

  bool slice() {
    for (SubDimAt at : places())
      if (std::optional<std::string> axis = nextAxis(at); axis && isFree(*axis)) {
        ReshardStep step = begin(ReshardStep::Slice, {*axis});
        putOn(step, at);
        return end(step);
      }
    return false;
  }

  bool permute() { return tradeEqualAxes() || reorderBoxes(); }

  /// Axes of equal size trade places until no trade makes one more right: [4@X, 4@Y] to [4@Y, 4@X], 8@X to 8@Y.
  bool tradeEqualAxes() {
    ReshardStep step = begin(ReshardStep::Permute, {});
    for (SubDimAt at : places())
      while (matched[at.dim] && hasWrong(at)) {
        size_t right = numRight(at);
        const std::vector<std::string> &wants = goal.dims[at.dim][at.sub].axes;
        if (right == wants.size() || mesh.size(axesAt(at)[right]) != mesh.size(wants[right]))
          break;
        std::string has = axesAt(at)[right], wanted = wants[right];
        for (DimSharding &dim : current.dims)
          for (SubDim &sub : dim)
            for (std::string &axis : sub.axes)
              axis = axis == has ? wanted : axis == wanted ? has : axis;
        for (const std::string &axis : {has, wanted})
          if (std::find(step.axes.begin(), step.axes.end(), axis) == step.axes.end())
            step.axes.push_back(axis);
      }
    return !step.axes.empty() && end(step);
  }

  /// Axes of different sizes that happen to make the same boxes: 6@(X, Y) to 6@(Y, X) over 2x3.
  bool reorderBoxes() {
    for (SubDimAt at : places()) {
      if (!hasWrong(at) || !matched[at.dim])
        continue;
      ReshardStep step = begin(ReshardStep::Permute, axesAt(at));
      std::vector<std::string> wants = goal.dims[at.dim][at.sub].axes;
      if (!std::is_permutation(wants.begin(), wants.end(), step.axes.begin(), step.axes.end()))
        continue;
      axesAt(at) = wants;
      if (isPermutation(step.before, current, step.axes, mesh))
        return end(step);
      current = step.before;
    }
    return false;
  }

  bool allToAll() {
    for (SubDimAt from : places()) {
      if (!hasWrong(from))
        continue;
      std::string axis = axesAt(from).back();
      std::optional<SubDimAt> to = roomFor(axis);
      if (!to)
        continue;
      ReshardStep step = begin(ReshardStep::AllToAll, {axis});
      takeFrom(step, from);
      putOn(step, *to);
      return end(step);
    }
    return false;
  }

  /// Gathers the wrong axis that helps most: one that makes room for another that is in the way elsewhere, one that
  /// lets its dim be matched, else the last.
  bool gather() {
    std::optional<SubDimAt> best;
    int bestScore = -1;
    for (SubDimAt at : places()) {
      if (!hasWrong(at))
        continue;
      int score = gatherScore(at);
      if (score >= bestScore) {
        best = at;
        bestScore = score;
      }
    }
    if (!best)
      return false;
    ReshardStep step = begin(ReshardStep::AllGather, {axesAt(*best).back()});
    takeFrom(step, *best);
    return end(step);
  }

  int gatherScore(SubDimAt at) const {
    if (matched[at.dim]) {
      size_t right = numRight(at);
      return right + 1 == current.dims[at.dim][at.sub].axes.size() && right < goal.dims[at.dim][at.sub].axes.size() ? 2
                                                                                                                    : 0;
    }
    DimSharding without = current.dims[at.dim], wanted = goal.dims[at.dim];
    without[at.sub].axes.pop_back();
    return refine(without, wanted, mesh) ? 1 : 0;
  }

  const Mesh &mesh;
  Sharding current, goal;
  std::vector<bool> matched;
};

} // namespace

static Status cannot(const Sharding &from, const Sharding &to, const std::string &why) {
  return Status::error(ErrorKind::Internal,
                       "cannot reshard '" + toString(from) + "' to '" + toString(to) + "': " + why);
}

Expected<std::vector<ReshardStep>> planReshard(const Sharding &from, const Sharding &to, const Mesh &mesh) {
  if (globalShape(from) != globalShape(to))
    return cannot(from, to, "they have different global shapes; a view comes before or after");
  for (const Sharding *sharding : {&from, &to})
    if (Status status = verify(*sharding, globalShape(from), mesh); !status.ok())
      return cannot(from, to, status.message());
  Sharding start = normalize(from, mesh), goal = normalize(to, mesh);
  for (const std::string &axis : goal.partial)
    if (std::find(start.partial.begin(), start.partial.end(), axis) == start.partial.end())
      return cannot(from, to,
                    "a full value is not a partial sum over '" + axis + "'; ask for '" + axis + "' not partial");
  Planner planner(start, goal, mesh);
  planner.run();
  if (!planner.done())
    return cannot(from, to, "no steps were found");
  return std::move(planner.steps);
}

} // namespace hpc::dist
