// The table of strategies, their axes, and the cuts that the user's seeds leave to them. A weight computed from a cut
// parameter may be cut, as its own cut is not known yet; one from a parameter that the user keeps whole may not.
#include "passes/Annotate/LayoutStrategy.h"

#include <cmath>
#include <numeric>

namespace hpc {

std::vector<LayoutSeed> oneDimensional(const LayoutProgram &program);
std::vector<LayoutSeed> twoDimensional(const LayoutProgram &program);
std::vector<LayoutSeed> threeDimensional(const LayoutProgram &program);
std::vector<LayoutSeed> sequenceParallel(const LayoutProgram &program);
Status needsSequence(const LayoutProgram &program);

static ArrayRef<LayoutStrategy> layoutStrategies() {
  static const std::vector<LayoutStrategy> strategies = {
      {"1d", {}, oneDimensional},
      {"2d", {{"x", dist::AxisRole::Data, true}, {"y", dist::AxisRole::Tensor}}, twoDimensional},
      {"2.5d", {{"x", dist::AxisRole::Data, true}, {"y", dist::AxisRole::Tensor}, {"z", dist::AxisRole::Data}}, twoDimensional},
      {"3d", {{"x", dist::AxisRole::Data, true}, {"y", dist::AxisRole::Tensor}, {"z", dist::AxisRole::Tensor}}, threeDimensional},
      {"1d+sp", {}, sequenceParallel, needsSequence}, // of --sp
  };
  return strategies;
}

static Status usage(const Twine &message) { return Status::error(ErrorKind::Usage, message.str()); }

Expected<const LayoutStrategy *> findLayout(StringRef layout) {
  SmallVector<StringRef> names;
  for (const LayoutStrategy &strategy : layoutStrategies()) {
    if (layout.split(':').first == strategy.name)
      return &strategy;
    if (!StringRef(strategy.name).contains('+'))
      names.push_back(strategy.name);
  }
  return usage("--tp-layout=" + layout + " is unknown; layouts are " + llvm::join(names, ", ") +
               ", those of several axes also with their sizes, as 2d:2x3");
}

Status checkSharesSequence(StringRef layout) {
  for (const LayoutStrategy &strategy : layoutStrategies())
    if ((layout + "+sp").str() == strategy.name)
      return Status::success();
  return usage("--sp with --tp-layout=" + layout + ": only the layout 1d has whole rows between products, which tp's ranks can share; use "
               "--tp-layout=1d, or leave --sp out");
}

// ---- axes ---------------------------------------------------------------------------------------

static size_t tensorAxis() {
  return size_t(llvm::find_if(dist::axisKinds(), [](auto &kind) { return kind.role == dist::AxisRole::Tensor; }) -
                dist::axisKinds().begin());
}

static std::string ownName(const LayoutStrategy::Axis &axis) {
  return std::string(dist::axisKinds()[tensorAxis()].name) + "." + axis.name;
}

/// "1x4, 2x2, 4x1": all ways to arrange `ranks` ranks along `axes` axes.
static SmallVector<std::string> shapesOf(int64_t ranks, size_t axes) {
  if (axes == 1)
    return {std::to_string(ranks)};
  SmallVector<std::string> shapes;
  for (int64_t first = 1; first <= ranks; ++first)
    if (ranks % first == 0)
      for (const std::string &rest : shapesOf(ranks / first, axes - 1))
        shapes.push_back(std::to_string(first) + "x" + rest);
  return shapes;
}

std::vector<std::string> layoutsOf(int64_t ranks) {
  std::vector<std::string> layouts;
  for (const LayoutStrategy &strategy : layoutStrategies()) {
    if (strategy.axes.empty()) {
      layouts.push_back(strategy.name);
      continue;
    }
    std::string best;
    int64_t leastSpread = std::numeric_limits<int64_t>::max();
    for (const std::string &shape : shapesOf(ranks, strategy.axes.size())) {
      SmallVector<int64_t> sizes;
      for (StringRef size : llvm::split(shape, 'x'))
        sizes.push_back(std::stoll(size.str()));
      auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
      if (*least > 1 && *most - *least < leastSpread) {
        leastSpread = *most - *least;
        best = shape;
      }
    }
    if (!best.empty())
      layouts.push_back(strategy.name + (":" + best));
  }
  return layouts;
}

/// The sizes that a layout names; none where it names none.
static Expected<SmallVector<int64_t>> sizesOf(StringRef layout, size_t axes) {
  SmallVector<int64_t> sizes;
  auto [name, text] = layout.split(':');
  if (text.empty() && !layout.contains(':'))
    return sizes;
  if (axes == 0)
    return usage("--tp-layout=" + layout + ": " + name + " has no axes of its own; leave ':" + text + "' out");
  for (StringRef part : llvm::split(text, 'x'))
    if (int64_t size = 0; part.getAsInteger(10, size) || size < 1 || size > dist::maxDegree)
      return usage("--tp-layout=" + layout + ": '" + part + "' is no size; write one for each axis, as 2d:2x3");
    else
      sizes.push_back(size);
  if (sizes.size() != axes)
    return usage("--tp-layout=" + layout + " gives " + Twine(sizes.size()) + " sizes, and " + name + " has " + Twine(axes) +
                 " axes; write one for each, as 2d:2x3");
  return sizes;
}

Expected<dist::Mesh> arrangeTensorAxis(const dist::Mesh &mesh, StringRef layout) {
  Expected<const LayoutStrategy *> strategy = findLayout(layout);
  if (!strategy.ok())
    return strategy.status();
  const auto &axes = (*strategy)->axes;
  Expected<SmallVector<int64_t>> given = sizesOf(layout, axes.size());
  if (!given.ok())
    return given.status();
  dist::Mesh arranged;
  for (const dist::Mesh::Axis &axis : mesh.axes) {
    if (axis.role != dist::AxisRole::Tensor || axes.empty()) {
      arranged.axes.push_back(axis);
      continue;
    }
    SmallVector<int64_t> sizes = *given;
    if (sizes.empty())
      sizes.assign(axes.size(), int64_t(std::llround(std::pow(double(axis.size), 1.0 / double(axes.size())))));
    if (std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>()) != axis.size)
      return usage("--tp-layout=" + layout + " with --" + axis.name + "=" + Twine(axis.size) + ": " +
                   (given->empty() ? "no equal sizes multiply to " : "the sizes do not multiply to ") + Twine(axis.size) +
                   "; shapes are " + llvm::join(shapesOf(axis.size, axes.size()), ", "));
    for (auto [own, size] : llvm::zip(axes, sizes))
      arranged.axes.push_back({ownName(own), size, own.role});
  }
  return arranged;
}

Expected<std::string> takeOwnAxes(dist::GivenSizes &mesh, StringRef layout) {
  const std::string tensor = dist::axisKinds()[tensorAxis()].name;
  dist::GivenSizes own;
  for (auto entry = mesh.begin(); entry != mesh.end();)
    if (StringRef(entry->first).starts_with(tensor + "."))
      own.insert(mesh.extract(entry++));
    else
      ++entry;
  if (own.empty())
    return layout.str();
  SmallVector<std::string> axes, sizes, fitting;
  int64_t product = 1;
  for (const auto &[axis, size] : own) {
    axes.push_back("\"" + axis + "\"");
    sizes.push_back(std::to_string(size));
    product *= size;
    if (product > dist::maxDegree)
      return usage("\"mesh\": " + llvm::join(axes, ", ") + " have more than " + Twine(dist::maxDegree) + " ranks; give smaller sizes");
  }
  for (const LayoutStrategy &strategy : layoutStrategies())
    if (llvm::equal(own, strategy.axes, [](const auto &given, const auto &axis) { return given.first == ownName(axis); }) &&
        (layout.empty() || layout == strategy.name))
      fitting.push_back(strategy.name);
  if (fitting.empty())
    return usage("\"mesh\": axes " + llvm::join(axes, ", ") + " are those of no layout" + (layout.empty() ? "" : " '" + layout + "'") +
                 "; a layout of two axes has tp.x and tp.y, one of three tp.z too");
  if (fitting.size() > 1)
    return usage("\"mesh\": axes " + llvm::join(axes, ", ") + " are those of the layouts " + llvm::join(fitting, " and ") + "; add \"layout\": \"" +
                 fitting.front() + "\"");
  if (auto given = mesh.find(tensor); given != mesh.end() && given->second != product)
    return usage("\"mesh\": \"" + tensor + "\" is " + Twine(given->second) + ", and " + llvm::join(axes, ", ") + " multiply to " + Twine(product) +
                 "; leave \"" + tensor + "\" out");
  mesh[tensor] = product;
  return fitting.front() + ":" + llvm::join(sizes, "x");
}

Status checkAxes(const LayoutStrategy &strategy, const dist::Mesh &mesh) {
  for (const LayoutStrategy::Axis &axis : strategy.axes)
    if (!mesh.hasRole(ownName(axis), axis.role))
      return Status::error(ErrorKind::Usage, "the layout " + std::string(strategy.name) + " arranges " + ownName(axis) + ":" + dist::name(axis.role) +
                                                 ", and the mesh " + dist::toString(mesh) + " has no such axis; give hpc-build-mesh the same layout");
  return Status::success();
}

std::vector<std::string> storageAxes(const LayoutStrategy &strategy, const dist::Mesh &mesh) {
  std::vector<std::string> names;
  for (const LayoutStrategy::Axis &axis : strategy.axes)
    if (axis.storesPieces && mesh.size(ownName(axis)) > 1)
      names.push_back(ownName(axis));
  return names;
}

// ---- seeds --------------------------------------------------------------------------------------

void cutPiece(dist::DimSharding &dim, const DimCut &cut) {
  int64_t inner = 1;
  for (size_t place = dim.size(); place-- > 0; inner *= dim[place].size) {
    dist::SubDim whole = dim[place];
    int64_t below = cut.piece.inner / inner, above = whole.size / below / cut.piece.size;
    bool isFree = llvm::all_of(whole.axes, [&](const std::string &axis) { return llvm::is_contained(cut.axes, axis); });
    if (!isFree || cut.piece.inner % inner || below * cut.piece.size * above != whole.size)
      continue;
    dist::DimSharding parts;
    if (above != 1)
      parts.push_back({above, {}});
    parts.push_back({cut.piece.size, cut.axes});
    if (below != 1)
      parts.push_back({below, {}});
    dim.erase(dim.begin() + ptrdiff_t(place));
    dim.insert(dim.begin() + ptrdiff_t(place), parts.begin(), parts.end());
    return;
  }
}

dist::DimSharding dimSharding(int64_t size, const DimCut &cut) {
  dist::DimSharding dim{{size, {}}};
  cutPiece(dim, cut);
  return dim;
}

int64_t LayoutProgram::ranksOf(ArrayRef<std::string> axes) const {
  int64_t ranks = 1;
  for (const std::string &axis : axes)
    ranks *= mesh.size(axis);
  return ranks;
}

SmallVector<dist::Seed> LayoutProgram::userSeeds(Value weight) const {
  SmallVector<dist::Seed> seeds;
  llvm::SetVector<Value> open;
  open.insert(weight);
  for (size_t next = 0; next < open.size(); ++next)
    if (Operation *op = open[next].getDefiningOp(); op && dependences.lookup(open[next]).isWeight()) {
      open.insert(op->operand_begin(), op->operand_end());
      if (std::optional<dist::Seed> seed = dist::seedOf(open[next]); seed && seed->isBinding())
        seeds.push_back(*seed);
    }
  return seeds;
}

bool LayoutProgram::mayCut(Value weight, const DimCut &cut) const {
  if (std::optional<dist::Seed> seed = dist::seedOf(weight); seed && seed->isBinding())
    return dist::normalize(seed->sharding.dims[cut.dim], mesh) ==
           dist::normalize(dimSharding(nn::shapeOf(weight)[cut.dim], cut), mesh);
  return llvm::none_of(userSeeds(weight), [](const dist::Seed &seed) { return dist::isReplicated(seed.sharding); });
}

} // namespace hpc
