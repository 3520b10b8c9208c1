// Everything is converted and checked when the data is opened, so that no step can fail on it.
#include "runtime/train/Batches.h"

#include "runtime/base/ArrayElements.h"
#include "runtime/base/CountText.h"
#include "runtime/base/Hash.h"
#include "runtime/base/Npy.h"
#include "runtime/base/Npz.h"
#include "runtime/base/NumberText.h"
#include "runtime/core/InputCheck.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

namespace hpc {

namespace {

constexpr const char *labelsName = "labels";

Status usage(const std::string &message) { return Status::error(ErrorKind::Usage, message); }

bool endsWith(const std::string &text, std::string_view ending) {
  return text.size() >= ending.size() && text.compare(text.size() - ending.size(), ending.size(), ending) == 0;
}

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

/// The array in another type, where that loses no more than the digits of an f64.
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

/// Keeps the batches of one input. `source` has the input's shape, with or without a dim of batches before it.
Status Batches::cycle(size_t input, Array source, const std::string &place) {
  const plan::Port &port = plan->inputs[input];
  std::vector<int64_t> shape = source.shape;
  int64_t given = 1;
  if (shape.size() == port.shape.size() + 1) {
    given = shape.front();
    shape.erase(shape.begin());
  }
  if (shape != port.shape)
    return usage(place + " has shape " + shapeText(source.shape) + "; the plan was compiled for batches of " +
                 shapeText(port.shape) + ": give [batches, " + shapeText(port.shape) +
                 "], or compile for the other shape (hpc-opt --dim)");
  if (given == 0)
    return usage(place + " has no batch; give one or more");
  if (batches != 0 && given != batches)
    return usage(place + " has " + countText(given, "batch", "es") + ", another array has " + std::to_string(batches) +
                 "; give all the same number");
  batches = given;
  Expected<Array> converted = convert(std::move(source), port.dtype, place);
  if (!converted.ok())
    return converted.status();
  sources[input] = std::move(*converted);
  return Status::success();
}

Status Batches::takeArchive(NamedArrays arrays, const std::string &path) {
  std::vector<size_t> missing;
  for (size_t input = 0; input < plan->inputs.size(); ++input) {
    const plan::Port &port = plan->inputs[input];
    if (port.isStepScalar)
      continue;
    auto found = std::find_if(arrays.begin(), arrays.end(), [&](const auto &array) { return array.first == port.name; });
    if (found == arrays.end())
      missing.push_back(input);
    else
      HPC_RETURN_IF_ERROR(cycle(input, std::move(found->second), "--data: array '" + port.name + "' of '" + path + "'"));
  }
  for (size_t input : missing) {
    const plan::Port &port = plan->inputs[input];
    size_t ids = 0;
    while (ids < sources.size() && (plan->inputs[ids].name != port.defaultInput || sources[ids].data.empty()))
      ++ids;
    if (ids == sources.size())
      return usage("--data: '" + path + "' has no array for " + portText(port) + "; add it under that name");
    HPC_RETURN_IF_ERROR(cycle(input, sources[ids], "'" + port.name + "', which are those of input '" + plan->inputs[ids].name + "'"));
  }
  return Status::success();
}

Status Batches::takeStream(Array tokens, const std::string &path) {
  size_t ids = plan->inputs.size(), labels = plan->inputs.size();
  for (size_t input = 0; input < plan->inputs.size(); ++input) {
    const plan::Port &port = plan->inputs[input];
    if (port.isStepScalar)
      continue;
    size_t &place = port.name == labelsName ? labels : ids;
    if (place != plan->inputs.size() || !isInteger(port.dtype) || port.shape.size() != 2)
      return usage("--data: a stream of tokens fills one input of ids, [batch, sequence], and labels of its shape; " +
                   portText(port) + " is another; give an .npz with an array for each input");
    place = input;
  }
  if (ids == plan->inputs.size() || (labels < ids && plan->inputs[labels].shape != plan->inputs[ids].shape))
    return usage("--data: '" + path + "' is a stream of tokens, and the plan has no input [batch, sequence] of ids");
  const plan::Port &port = plan->inputs[ids];
  const int64_t perBatch = std::max<int64_t>(port.shape[0] * port.shape[1], 1), whole = tokens.elements() / perBatch;
  if (whole == 0)
    return usage("--data: '" + path + "' has " + countText(tokens.elements(), "token") + ", a step takes " +
                 std::to_string(perBatch) + " (" + shapeText(port.shape) + "); give more, or compile for less");
  tokens.shape = {whole, port.shape[0], port.shape[1]};
  tokens.data.resize(size_t(whole * perBatch * byteSize(tokens.dtype)));
  HPC_RETURN_IF_ERROR(cycle(ids, std::move(tokens), "--data: '" + path + "'"));
  return labels == plan->inputs.size() ? Status::success() : cycle(labels, sources[ids], "the labels");
}

/// A .bin of tokens of 32 bits would be taken for twice as many of 16, half of them 0.
static Status checkFitsBin(const plan::Plan &plan, const std::string &path) {
  constexpr int64_t most = int64_t(1) << 16;
  for (const plan::Port &port : plan.inputs)
    for (const plan::Lookup &lookup : port.lookups)
      if (lookup.high > most)
        return usage("--data: '" + path + "': a .bin holds tokens of 16 bits, and " + lookup.reader + " takes numbers to " +
                     std::to_string(lookup.high - 1) + " from input '" + port.name + "', which need more; give a .npy of 32 bits, as "
                     "numpy.save writes one");
  return Status::success();
}

Expected<Batches> Batches::open(const plan::Plan &plan, const std::string &path, std::vector<std::string> &notes) {
  Batches data;
  data.plan = &plan;
  data.sources.resize(plan.inputs.size());
  Status status;
  if (endsWith(path, ".npz")) {
    std::string ignored;
    Expected<NamedArrays> arrays = readNpz(path, [&](const std::string &name) -> std::optional<int64_t> {
      for (const plan::Port &port : plan.inputs)
        if (!port.isStepScalar && port.name == name)
          return std::numeric_limits<int64_t>::max();
      ignored += (ignored.empty() ? "'" : ", '") + name + "'";
      return std::nullopt;
    });
    if (!ignored.empty())
      notes.push_back("note: --data: of '" + path + "' ignored, since the plan has no such input: " + ignored);
    status = arrays.ok() ? data.takeArchive(std::move(*arrays), path) : arrays.status();
  } else if (endsWith(path, ".npy")) {
    Expected<Array> tokens = readNpy(path);
    status = tokens.status();
    if (tokens.ok() && (tokens->shape.size() != 1 || !isInteger(tokens->dtype)))
      status = usage("--data: '" + path + "' is " + shapeText(tokens->shape) + " of " + name(tokens->dtype) +
                     "; a stream of tokens is one dim of integers; give other data as .npz with names");
    else if (tokens.ok())
      status = data.takeStream(std::move(*tokens), path);
  } else if (endsWith(path, ".bin")) {
    HPC_RETURN_IF_ERROR(checkFitsBin(plan, path));
    Expected<MappedFile> file = MappedFile::open(path);
    status = file.status();
    if (file.ok() && file->size() % 2)
      status = usage("--data: '" + path + "' has an odd number of bytes; a .bin holds tokens of 16 bits");
    else if (file.ok())
      status = data.takeStream({DType::U16, {file->size() / 2}, {file->data(), file->data() + file->size()}}, path);
  } else {
    status = usage("--data=" + path + ": is neither .npz (an array for each input) nor .npy or .bin (tokens)");
  }
  HPC_RETURN_IF_ERROR(status);
  HPC_RETURN_IF_ERROR(data.checkNumbers(path));
  return data;
}

Status Batches::checkNumbers(const std::string &path) const {
  auto isLookedUp = [](const plan::Port &port) { return !port.lookups.empty(); };
  if (std::none_of(plan->inputs.begin(), plan->inputs.end(), isLookedUp))
    return Status::success();
  std::vector<Array> inputs(sources.size());
  for (int64_t batch = 0; batch < batches; ++batch) {
    HPC_RETURN_IF_ERROR(fill(batch, inputs));
    for (size_t i = 0; i < inputs.size(); ++i)
      if (!plan->inputs[i].isStepScalar)
        HPC_RETURN_IF_ERROR(
            checkLookups(plan->inputs[i], inputs[i]).at("--data: batch " + std::to_string(batch) + " of '" + path + "'"));
  }
  return Status::success();
}

Status Batches::fill(int64_t step, std::vector<Array> &inputs) const {
  for (size_t input = 0; input < sources.size(); ++input) {
    const plan::Port &port = plan->inputs[input];
    if (port.isStepScalar)
      continue;
    const size_t bytes = sources[input].data.size() / size_t(batches);
    const std::byte *batch = sources[input].data.data() + size_t(step % batches) * bytes;
    inputs[input].dtype = port.dtype;
    inputs[input].shape = port.shape;
    inputs[input].data.assign(batch, batch + bytes);
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
  uint64_t hash = uint64_t(batches);
  for (const Array &source : sources)
    hash = hash * 31 + hashBytes(source.data.data(), int64_t(source.data.size()));
  return hash;
}

std::string Batches::summary() const {
  std::string text = countText(batches, "batch", "es") + " of", between = " ";
  for (const plan::Port &port : plan->inputs)
    if (!port.isStepScalar) {
      text += between + port.name + " " + shapeText(port.shape);
      between = ", ";
    }
  char hash[32];
  std::snprintf(hash, sizeof(hash), " (%016llx)", static_cast<unsigned long long>(fingerprint()));
  return text + hash;
}

} // namespace hpc
