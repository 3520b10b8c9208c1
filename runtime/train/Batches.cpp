// Everything is checked when the data is opened, batch by batch, so that no step can fail on it.
#include "runtime/train/Batches.h"

#include "runtime/base/ArrayElements.h"
#include "runtime/base/CountText.h"
#include "runtime/base/Hash.h"
#include "runtime/base/Npz.h"
#include "runtime/base/NumberText.h"
#include "runtime/core/InputCheck.h"
#include "runtime/core/WideningConversion.h"
#include "runtime/train/Permutation.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>

namespace hpc {

namespace {

Status usage(const std::string &message) { return Status::error(ErrorKind::Usage, message); }

bool isInteger(DType dtype) { return !isFloat(dtype) && dtype != DType::Bool; }

template <typename From, typename To> Status convertAll(const Array &from, Array &to, const std::string &place) {
  for (int64_t i = 0; i < from.elements(); ++i) {
    From value = from.as<From>()[i];
    if constexpr (std::is_integral_v<To>) {
      using Limits = std::numeric_limits<To>;
      bool fits = std::is_signed_v<From> && value < From(0)
                      ? std::is_signed_v<To> && int64_t(value) >= int64_t(Limits::min())
                      : uint64_t(value) <= uint64_t(Limits::max());
      if (!fits)
        return usage(place + ": " + std::to_string(value) + " does not fit " + name(to.dtype) +
                     ", which the plan takes; mend the data");
    }
    to.as<To>()[i] = To(value);
  }
  return Status::success();
}

template <typename To> Status convertInto(const Array &from, Array &to, const std::string &place) {
  switch (from.dtype) {
  case DType::I64:
    return convertAll<int64_t, To>(from, to, place);
  case DType::I32:
    return convertAll<int32_t, To>(from, to, place);
  case DType::I16:
    return convertAll<int16_t, To>(from, to, place);
  case DType::I8:
    return convertAll<int8_t, To>(from, to, place);
  case DType::U64:
    return convertAll<uint64_t, To>(from, to, place);
  case DType::U32:
    return convertAll<uint32_t, To>(from, to, place);
  case DType::U16:
    return convertAll<uint16_t, To>(from, to, place);
  default:
    return convertAll<uint8_t, To>(from, to, place);
  }
}

/// The array in another type; an error where that loses more than the digits of an f64.
Expected<Array> convert(Array from, DType dtype, const std::string &place) {
  if (from.dtype == dtype)
    return from;
  Array to{dtype, from.shape, std::vector<std::byte>(size_t(from.elements() * byteSize(dtype)))};
  if (from.dtype == DType::F64 && dtype == DType::F32) {
    for (int64_t i = 0; i < from.elements(); ++i) {
      const double value = from.as<double>()[i];
      if (std::isfinite(value) && std::abs(value) > std::numeric_limits<float>::max())
        return usage(place + ": " + numberText(value) + " does not fit f32, which the plan takes; mend or scale the data");
      to.as<float>()[i] = float(value);
    }
    return to;
  }
  Status status = usage(place + " is " + name(from.dtype) + ", the plan takes " + name(dtype) + "; convert it");
  if (isInteger(from.dtype) && dtype == DType::I64)
    status = convertInto<int64_t>(from, to, place);
  else if (isInteger(from.dtype) && dtype == DType::I32)
    status = convertInto<int32_t>(from, to, place);
  if (!status.ok())
    return status;
  return to;
}

std::string portText(const plan::Port &port) {
  return "input '" + port.name + "' (" + shapeText(port.shape) + " of " + name(port.dtype) + ")";
}

} // namespace

/// Notes where the batches of one input lie. The array has the input's shape, with or without a dim of batches before it.
Status Batches::cycle(size_t input, const NpyView &array, const std::string &place) {
  const plan::Port &port = plan->inputs[input];
  std::vector<int64_t> shape = array.shape;
  int64_t given = 1;
  if (shape.size() == port.shape.size() + 1) {
    given = shape.front();
    shape.erase(shape.begin());
  }
  if (shape != port.shape)
    return usage(place + " has shape " + shapeText(array.shape) + "; the plan was compiled for batches of " +
                 shapeText(port.shape) + ": give [batches, " + shapeText(port.shape) +
                 "], or compile for the other shape (hpc-opt --dim)");
  if (given == 0)
    return usage(place + " has no batch; give one or more");
  const std::byte *data = reinterpret_cast<const std::byte *>(array.data.data());
  return cycle(input, {true, array.dtype, data, int64_t(array.data.size()) / given, place}, given, place);
}

Status Batches::cycle(size_t input, const Source &source, int64_t given, const std::string &place) {
  if (batches != 0 && given != batches)
    return usage(place + " has " + countText(given, "batch", "es") + ", another array has " + std::to_string(batches) +
                 "; give all the same number");
  batches = given;
  sources[input] = source;
  sources[input].place = place;
  return Status::success();
}

/// The array row by row, in memory that stays, where it does not lie so in the file.
NpyView Batches::inRowOrder(const NpyView &array, std::string &storage) {
  if (!array.fortranOrder && storage.empty())
    return array;
  if (array.fortranOrder) {
    const Array copy = toArray(array);
    storage.assign(reinterpret_cast<const char *>(copy.data.data()), copy.data.size());
  } else {
    storage.erase(0, size_t(array.data.data() - storage.data()));
  }
  unpacked.push_back(std::make_unique<std::string>(std::move(storage)));
  return {array.dtype, array.shape, false, *unpacked.back()};
}

Status Batches::takeArchive(std::vector<std::string> &notes) {
  std::string ignored;
  auto portOf = [&](const std::string &name) {
    size_t input = 0;
    while (input < plan->inputs.size() && (plan->inputs[input].isStepScalar || plan->inputs[input].name != name))
      ++input;
    return input;
  };
  std::map<size_t, NpyView> given;
  HPC_RETURN_IF_ERROR(visitNpz(
      file.text(), path,
      [&](const std::string &name) -> std::optional<int64_t> {
        if (portOf(name) < plan->inputs.size())
          return std::numeric_limits<int64_t>::max();
        ignored += (ignored.empty() ? "'" : ", '") + name + "'";
        return std::nullopt;
      },
      [&](const std::string &name, const NpyView &array, std::string &storage) {
        given[portOf(name)] = inRowOrder(array, storage);
        return Status::success();
      }));
  if (!ignored.empty())
    notes.push_back("note: of '" + path + "' ignored, since the plan has no such input: " + ignored);
  for (auto &[input, array] : given)
    HPC_RETURN_IF_ERROR(cycle(input, array, "array '" + plan->inputs[input].name + "' of '" + path + "'"));
  for (size_t input = 0; input < plan->inputs.size(); ++input) {
    const plan::Port &port = plan->inputs[input];
    if (port.isStepScalar || given.count(input))
      continue;
    size_t ids = 0;
    while (ids < sources.size() && (plan->inputs[ids].name != port.defaultInput || !given.count(ids)))
      ++ids;
    if (ids == sources.size())
      return usage("'" + path + "' has no array for " + portText(port) + "; add it under that name");
    HPC_RETURN_IF_ERROR(
        cycle(input, sources[ids], batches, "'" + port.name + "', which are those of input '" + plan->inputs[ids].name + "'"));
  }
  return Status::success();
}

Expected<Batches> Batches::open(const plan::Plan &plan, const std::string &path, const BatchOptions &options, std::vector<std::string> &notes) {
  Batches data;
  data.plan = &plan;
  data.path = path;
  data.options = options;
  data.sources.resize(plan.inputs.size());
  Expected<MappedFile> file = MappedFile::open(path);
  HPC_RETURN_IF_ERROR(file.status());
  data.file = std::move(*file);
  HPC_RETURN_IF_ERROR(data.takeArchive(notes));
  const int64_t first = options.range.first(data.batches), count = options.range.count(data.batches);
  if (count == 0)
    return usage("'" + path + "': of " + countText(data.batches, "batch", "es") + ", --split leaves none for this part; give more data or other shares");
  for (Source &source : data.sources)
    source.data += source.isGiven ? first * source.batchBytes : 0;
  data.batches = count;
  HPC_RETURN_IF_ERROR(data.checkNumbers());
  return data;
}

Status Batches::checkNumbers() const {
  bool isSure = true; // whatever numbers there are
  for (size_t i = 0; i < sources.size(); ++i)
    isSure = isSure && plan->inputs[i].lookups.empty() && (!sources[i].isGiven || isExactIn(sources[i].dtype, plan->inputs[i].dtype));
  std::vector<Array> inputs(sources.size());
  for (int64_t batch = 0; batch < (isSure ? std::min<int64_t>(batches, 1) : batches); ++batch) {
    HPC_RETURN_IF_ERROR(fill(batch, inputs));
    for (size_t i = 0; i < inputs.size(); ++i)
      if (!plan->inputs[i].isStepScalar)
        HPC_RETURN_IF_ERROR(
            checkLookups(plan->inputs[i], inputs[i]).at("batch " + std::to_string(batch) + " of '" + path + "'"));
  }
  return Status::success();
}

int64_t Batches::sampleOf(int64_t step) const {
  for (const plan::Port &port : plan->inputs)
    if (!port.isStepScalar && !port.shape.empty())
      return step * port.shape[0];
  return step;
}

Status Batches::fill(int64_t step, std::vector<Array> &inputs) const {
  int64_t batch = step % batches;
  if (options.shuffleSeed)
    batch = Permutation(batches, uint64_t(*options.shuffleSeed), 0, step / batches)(batch);
  for (size_t input = 0; input < sources.size(); ++input) {
    const plan::Port &port = plan->inputs[input];
    const Source &source = sources[input];
    if (port.isStepScalar)
      continue;
    const std::byte *first = source.data + batch * source.batchBytes;
    Array array{source.dtype, port.shape, {first, first + source.batchBytes}};
    if (source.dtype != port.dtype) {
      Expected<Array> converted = convert(std::move(array), port.dtype, source.place);
      HPC_RETURN_IF_ERROR(converted.status());
      array = std::move(*converted);
    }
    inputs[input] = std::move(array);
  }
  return Status::success();
}

std::string Batches::findNumber(int64_t step, bool (*is)(double)) const {
  std::vector<Array> inputs(sources.size());
  if (!fill(step, inputs).ok())
    return "";
  for (size_t input = 0; input < inputs.size(); ++input) {
    const plan::Port &port = plan->inputs[input];
    for (int64_t i = 0; !port.isStepScalar && isFloat(port.dtype) && i < inputs[input].elements(); ++i) {
      const double number = numberAt(inputs[input], i);
      if (!is(number))
        continue;
      std::string index;
      for (int64_t dim = int64_t(port.shape.size()) - 1, rest = i; dim >= 0; rest /= port.shape[size_t(dim--)])
        index = std::to_string(rest % port.shape[size_t(dim)]) + (index.empty() ? "" : ", ") + index;
      return "input '" + port.name + "' of its batch holds " + numberText(number) + " at [" + index + "]";
    }
  }
  return "";
}

uint64_t Batches::fingerprint() const {
  uint64_t hash = uint64_t(batches) + uint64_t(options.shuffleSeed.value_or(-1) + 1) * 0x9E3779B97F4A7C15;
  for (const Source &source : sources)
    hash = hash * 31 + hashBytes(source.data, source.batchBytes * batches * source.isGiven);
  return hash;
}

std::string Batches::summary() const {
  std::string text = countText(batches, "batch", "es") + " of", between = " ";
  for (const plan::Port &port : plan->inputs)
    if (!port.isStepScalar) {
      text += between + port.name + " " + shapeText(port.shape);
      between = ", ";
    }
  if (options.shuffleSeed)
    text += ", shuffled by seed " + std::to_string(*options.shuffleSeed);
  char hash[32];
  std::snprintf(hash, sizeof(hash), " (%016llx)", static_cast<unsigned long long>(fingerprint()));
  return text + hash;
}

} // namespace hpc
