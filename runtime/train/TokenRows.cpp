#include "runtime/train/TokenRows.h"

#include "runtime/base/CountText.h"
#include "runtime/base/NumberText.h"
#include "runtime/plan/StepPorts.h"
#include "runtime/train/Permutation.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace hpc {

static Status rowsUsage(const std::string &message) { return Status::error(ErrorKind::Usage, message); }

static std::string rowsPortText(const plan::Port &port) {
  return "input '" + port.name + "' (" + shapeText(port.shape) + " of " + name(port.dtype) + ")";
}

/// The label for nothing of all that looks the labels up; none where one of them has none.
static std::optional<int64_t> ignoredLabel(const plan::Port &labels) {
  std::optional<int64_t> ignored;
  for (const plan::Lookup &lookup : labels.lookups) {
    if (!lookup.ignored || (ignored && *ignored != *lookup.ignored))
      return std::nullopt;
    ignored = lookup.ignored;
  }
  return ignored;
}

template <typename Number> static void copyInto(const std::vector<int64_t> &numbers, Array &array) {
  std::transform(numbers.begin(), numbers.end(), array.as<Number>(), [](int64_t number) { return Number(number); });
}

/// The port's type is one that takesNumbers.
static Array arrayOf(const plan::Port &port, const std::vector<int64_t> &numbers) {
  Array array = Array::zeros(port.dtype, port.shape);
  switch (port.dtype) {
  case DType::I64:
    copyInto<int64_t>(numbers, array);
    break;
  case DType::I32:
    copyInto<int32_t>(numbers, array);
    break;
  case DType::F64:
    copyInto<double>(numbers, array);
    break;
  case DType::F32:
    copyInto<float>(numbers, array);
    break;
  default:
    copyInto<uint8_t>(numbers, array);
  }
  return array;
}

/// Ids and their like are 32 or 64 bits; a mask may be more.
static bool takesNumbers(DType dtype, bool isMask) {
  return dtype == DType::I64 || dtype == DType::I32 || (isMask && (dtype == DType::Bool || dtype == DType::U8 || dtype == DType::F32 || dtype == DType::F64));
}

IdRange idRangeOf(const plan::Plan &plan) {
  IdRange range;
  for (const plan::Port &port : plan.inputs) {
    if (!port.isStepScalar && port.dtype == DType::I32)
      range.high = std::min(range.high, int64_t(INT32_MAX) + 1);
    for (const plan::Lookup &lookup : port.lookups)
      if (lookup.high < range.high || lookup.low > range.low) {
        range.high = std::min(range.high, lookup.high);
        range.low = std::max(range.low, lookup.low);
        range.reader = "'" + lookup.reader + "' takes " + std::to_string(range.low) + " to " + std::to_string(range.high - 1) + " from input '" + port.name + "'";
      }
  }
  return range;
}

Status TokenRows::takePorts() {
  const plan::Port *ids = nullptr;
  for (const plan::Port &port : plan->inputs) {
    const Role role = port.isStepScalar                ? Role::StepScalar
                      : port.name == plan::labelsName  ? Role::Labels
                      : port.name == "attention_mask"  ? Role::Mask
                      : port.name == "position_ids"    ? Role::Positions
                                                       : Role::Ids;
    if (role != Role::StepScalar && (port.shape.size() != 2 || !takesNumbers(port.dtype, role == Role::Mask) || (role == Role::Ids && ids)))
      return rowsUsage("a stream of tokens fills one input of ids, [batch, sequence], and labels, attention_mask and position_ids of its shape; " +
                       rowsPortText(port) + " is another; give an .npz with an array for each input");
    if (role == Role::Ids)
      ids = &port;
    if (role == Role::Labels)
      ignored = ignoredLabel(port);
    roles.push_back(role);
  }
  if (!ids)
    return rowsUsage("the data are a stream of tokens, and the plan has no input [batch, sequence] of ids; give an .npz with an array for each input");
  for (const plan::Port &port : plan->inputs)
    if (!port.isStepScalar && port.shape != ids->shape)
      return rowsUsage("a stream of tokens fills inputs of the shape of '" + ids->name + "', " + shapeText(ids->shape) + ", and " + rowsPortText(port) +
                       " has another; give an .npz with an array for each input");
  batch = ids->shape[0];
  length = ids->shape[1];
  if (batch == 0 || length == 0)
    return rowsUsage(rowsPortText(*ids) + " takes no token; compile for more");
  return Status::success();
}

/// "'a.bin'" or "'a.bin' and 2 more files".
static std::string filesText(const TokenSource &source) {
  const int64_t more = int64_t(source.files.size()) - 1;
  return source.files.empty() ? "no file" : "'" + source.files[0].path() + "'" + (more > 0 ? " and " + countText(more, "more file") : "");
}

Status TokenRows::takeRows(TokenSource given, std::vector<std::string> &notes) {
  Rows rows{std::move(given), {}, 0, 0};
  for (const text::TokenArray &file : rows.source.files) {
    if (options.pad && !file.knowsDocuments())
      return rowsUsage("'" + file.path() + "' does not hold where documents begin, which --pad needs; give text or Megatron's .idx, or leave out --pad");
    rows.ends.push_back((rows.ends.empty() ? 0 : rows.ends.back()) + (options.pad ? file.documents() : file.size()));
  }
  const int64_t all = rows.ends.empty() ? 0 : rows.ends.back(), whole = options.pad ? all : all / length;
  const std::string has = filesText(rows.source) + (rows.source.files.size() > 1 ? " have " : " has ") + countText(all, options.pad ? "document" : "token");
  if (whole == 0)
    return rowsUsage(has + (options.pad ? "" : ", a row takes " + std::to_string(length)) + "; give more" + (options.pad ? "" : ", compile for less, or give --pad"));
  if (const int64_t rest = all - whole * length; !options.pad && rest > 0)
    notes.push_back("note: " + filesText(rows.source) + ": the last " + std::to_string(rest) + " of " + countText(all, "token") + " fill no row of " +
                    std::to_string(length) + " and are left out");
  rows.first = options.range.first(whole);
  rows.count = options.range.count(whole);
  if (rows.count == 0)
    return rowsUsage(filesText(rows.source) + ": of " + countText(whole, "row") + ", --split leaves none for this part; give more data or other shares");
  sources.push_back(std::move(rows));
  return Status::success();
}

bool TokenRows::fillsUp() const { return options.once && ignored; }

int64_t TokenRows::rows() const {
  return std::accumulate(sources.begin(), sources.end(), int64_t(0), [](int64_t sum, const Rows &rows) { return sum + rows.count; });
}

Expected<TokenRows> TokenRows::open(const plan::Plan &plan, std::vector<TokenSource> given, const RowOptions &options, std::vector<std::string> &notes) {
  TokenRows data;
  data.plan = &plan;
  data.options = options;
  HPC_RETURN_IF_ERROR(data.takePorts());
  if (options.samplesBefore)
    data.firstSample = *options.samplesBefore - options.stepsBefore * data.batch;
  const bool hasLabels = std::find(data.roles.begin(), data.roles.end(), Role::Labels) != data.roles.end();
  if (options.pad && !options.trainPadding && !data.ignored)
    return rowsUsage(std::string("--pad: the model's loss ") + (hasLabels ? "has no label that does not count" : "takes no labels beside the ids") +
                     ", so padding would be trained; give --train-padding if it is to be, or leave out --pad");
  std::vector<std::string> weights;
  for (TokenSource &source : given) {
    weights.push_back(source.weight);
    HPC_RETURN_IF_ERROR(data.takeRows(std::move(source), notes));
  }
  if (data.sources.empty())
    return rowsUsage("there are no tokens; name a file");
  if (!options.once && !weights.front().empty()) {
    Expected<Blend> blend = Blend::create(weights);
    HPC_RETURN_IF_ERROR(blend.status());
    data.blend.emplace(std::move(*blend));
  }
  const int64_t rows = data.rows(), rest = rows % data.batch;
  const bool dropsRest = (options.dropLast && !data.blend) || (options.once && !data.fillsUp());
  if (dropsRest && rows < data.batch)
    return rowsUsage(filesText(data.sources[0].source) + ": " + countText(rows, "row") + " of " + std::to_string(data.length) + " tokens fill no batch of " +
                     std::to_string(data.batch) + "; give more" + (options.dropLast ? ", or leave out --drop-last" : ""));
  if (dropsRest && rest > 0)
    notes.push_back("note: " + filesText(data.sources[0].source) + ": the last " + countText(rest, "row") + " of " + std::to_string(rows) + " fill no batch of " +
                    std::to_string(data.batch) + " and are left out");
  else if (!options.once && rows < data.batch)
    notes.push_back("note: " + filesText(data.sources[0].source) + ": " + countText(rows, "row") + " of " + std::to_string(data.length) + " tokens fill no batch of " +
                    std::to_string(data.batch) + ", so a batch has rows more than once");
  return data;
}

int64_t TokenRows::count() const {
  const bool dropsRest = (options.dropLast && !blend) || (options.once && !fillsUp());
  return dropsRest ? rows() / batch : (rows() + batch - 1) / batch;
}

int64_t TokenRows::epochOf(int64_t step) const {
  const int64_t ofEpoch = options.once || (options.dropLast && !blend) ? count() * batch : rows();
  return sampleOf(step) / ofEpoch;
}

std::pair<size_t, int64_t> TokenRows::rowOf(int64_t sample) const {
  if (blend) {
    const Blend::Sample place = blend->at(sample);
    const int64_t count = sources[place.source].count, epoch = place.index / count, row = place.index % count;
    return {place.source, options.shuffleSeed ? Permutation(count, uint64_t(*options.shuffleSeed), uint32_t(place.source), epoch)(row) : row};
  }
  const int64_t all = rows(), ofEpoch = options.dropLast ? count() * batch : all, epoch = sample / ofEpoch;
  int64_t row = sample % ofEpoch;
  if (options.shuffleSeed)
    row = Permutation(all, uint64_t(*options.shuffleSeed), 0, epoch)(row);
  size_t source = 0;
  while (row >= sources[source].count)
    row -= sources[source++].count;
  return {source, row};
}

int64_t TokenRows::read(const Rows &rows, int64_t row, int64_t *to) const {
  row += rows.first;
  auto fileOf = [&](int64_t place) { return size_t(std::upper_bound(rows.ends.begin(), rows.ends.end(), place) - rows.ends.begin()); };
  auto startOf = [&](size_t file) { return file == 0 ? int64_t(0) : rows.ends[file - 1]; };
  if (options.pad) {
    const size_t file = fileOf(row);
    const auto [begin, end] = rows.source.files[file].document(row - startOf(file));
    const int64_t taken = std::min(end - begin, length);
    rows.source.files[file].take(begin, taken, to);
    std::fill(to + taken, to + length, options.padToken);
    return taken;
  }
  for (int64_t done = 0; done < length;) {
    const int64_t place = row * length + done;
    const size_t file = fileOf(place);
    const int64_t some = std::min(length - done, rows.ends[file] - place);
    rows.source.files[file].take(place - startOf(file), some, to + done);
    done += some;
  }
  return length;
}

Status TokenRows::fill(int64_t step, std::vector<Array> &inputs) const {
  // A row that fills up a batch has no label, and nothing of it is hidden, so that each of its tokens has something to look at.
  std::vector<int64_t> ids(size_t(batch * length), 0), mask(ids.size(), 1), labels, positions(ids.size());
  const int64_t start = options.once ? step % count() * batch : sampleOf(step);
  std::vector<int64_t> labelled(size_t(batch), 0); ///< of each row, from its beginning
  for (int64_t i = 0; i < batch && !(options.once && start + i >= rows()); ++i) {
    const auto [source, row] = rowOf(start + i);
    const int64_t real = read(sources[source], row, ids.data() + i * length);
    std::fill(mask.begin() + i * length + real, mask.begin() + (i + 1) * length, 0);
    labelled[size_t(i)] = options.trainPadding ? length : real;
  }
  labels = ids;
  for (int64_t i = 0; i < batch; ++i) {
    std::iota(positions.begin() + i * length, positions.begin() + (i + 1) * length, 0);
    if (ignored)
      std::fill(labels.begin() + i * length + labelled[size_t(i)], labels.begin() + (i + 1) * length, *ignored);
  }
  for (size_t input = 0; input < roles.size(); ++input)
    if (roles[input] != Role::StepScalar)
      inputs[input] = arrayOf(plan->inputs[input], roles[input] == Role::Labels      ? labels
                                                   : roles[input] == Role::Mask      ? mask
                                                   : roles[input] == Role::Positions ? positions
                                                                                     : ids);
  return Status::success();
}

uint64_t TokenRows::fingerprint() const {
  uint64_t hash = uint64_t(batch) * 31 + uint64_t(length);
  auto add = [&](uint64_t number) { hash = hash * 0x9E3779B97F4A7C15 + number; };
  for (const Rows &rows : sources) {
    add(rows.source.fingerprint);
    add(uint64_t(rows.first));
    add(uint64_t(rows.count));
    for (char sign : rows.source.weight)
      add(uint64_t(sign));
  }
  for (int64_t number : {int64_t(options.pad), options.pad ? options.padToken : 0, int64_t(options.trainPadding), options.shuffleSeed.value_or(-1), int64_t(options.dropLast)})
    add(uint64_t(number));
  return hash;
}

std::string TokenRows::summary() const {
  std::string text = countText(rows(), "row") + " of " + std::to_string(length) + (options.pad ? " padded" : "") + " tokens, " + std::to_string(batch) + " a step";
  if (options.shuffleSeed)
    text += ", shuffled by seed " + std::to_string(*options.shuffleSeed);
  char hash[32];
  std::snprintf(hash, sizeof(hash), " (%016llx)", static_cast<unsigned long long>(fingerprint()));
  return text + hash;
}

} // namespace hpc
