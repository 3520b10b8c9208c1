// Gathers slices out of the bytes of mapped files (or of the plan), which WeightSources.cpp finds, and converts them.
#include "runtime/core/Weights.h"

#include "runtime/base/Array.h"
#include "runtime/base/HalfFloat.h"
#include "runtime/base/Hash.h"
#include "runtime/core/CheckpointFiles.h"
#include "runtime/core/SavedTensors.h"
#include "runtime/core/WideningConversion.h"

#include <algorithm>
#include <cstring>

namespace hpc {

namespace {

/// `count` elements of one value.
template <typename T> std::vector<std::byte> repeatedAs(T value, int64_t count) {
  std::vector<std::byte> bytes(size_t(count) * sizeof(T));
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(bytes.data() + size_t(i) * sizeof(T), &value, sizeof(T));
  return bytes;
}

/// `count` f32 at `from`, rounded to f16 or bf16.
std::vector<std::byte> rounded(DType dtype, const std::byte *from, int64_t count) {
  std::vector<std::byte> bytes(size_t(count) * 2);
  for (int64_t i = 0; i < count; ++i) {
    float value;
    std::memcpy(&value, from + i * int64_t(sizeof(value)), sizeof(value));
    uint16_t bits = dtype == DType::F16 ? floatToHalf(value) : floatToBfloat(value);
    std::memcpy(bytes.data() + i * 2, &bits, sizeof(bits));
  }
  return bytes;
}

std::vector<std::byte> repeated(DType dtype, double value, int64_t count) {
  switch (dtype) {
  case DType::F32:
    return repeatedAs(float(value), count);
  case DType::F64:
    return repeatedAs(value, count);
  case DType::F16:
    return repeatedAs(floatToHalf(float(value)), count);
  case DType::BF16:
    return repeatedAs(floatToBfloat(float(value)), count);
  case DType::I64:
    return repeatedAs(int64_t(value), count);
  case DType::I32:
    return repeatedAs(int32_t(value), count);
  case DType::I16:
    return repeatedAs(int16_t(value), count);
  case DType::I8:
    return repeatedAs(int8_t(value), count);
  case DType::U8:
    return repeatedAs(uint8_t(value), count);
  case DType::U16:
    return repeatedAs(uint16_t(value), count);
  case DType::U32:
    return repeatedAs(uint32_t(value), count);
  case DType::U64:
    return repeatedAs(uint64_t(value), count);
  case DType::Bool:
    return repeatedAs(uint8_t(value != 0), count);
  }
  return {};
}

} // namespace

std::vector<int32_t> Weights::onlyRead() const {
  std::map<std::string, int32_t> byName;
  for (size_t i = 0; i < plan->weights.size(); ++i) {
    const plan::Weight &weight = plan->weights[i];
    if (!weight.isConstant && (weight.file >= 0 || !weight.stateNames.empty()))
      byName.try_emplace(weight.name, int32_t(i));
  }
  for (const SavedTensor &tensor : savedTensors(*plan))
    byName.erase(tensor.name);
  std::vector<int32_t> indices;
  for (auto &[name, index] : byName)
    indices.push_back(index);
  return indices;
}

uint64_t Weights::fingerprint() const {
  uint64_t combined = 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    const plan::Weight &weight = plan->weights[i];
    if (weight.isAbsent() || sources[i].mayDiffer)
      combined = fingerprintOf(sources[i].data, weight.bytes / byteSize(weight.dtype) * byteSize(sources[i].dtype), combined);
  }
  return combined;
}

uint64_t Weights::checkpointFingerprint() const {
  if (!saving)
    return 0;
  if (savedState)
    return savedState;
  uint64_t combined = fingerprintOf(saving->tensors());
  for (const auto &[key, text] : saving->metadata())
    combined = fingerprintOf(key + "=" + text, combined);
  return states ? combined * 31 + fingerprintOf(states->tensors()) : combined;
}

bool Weights::isStoredAsItIs(int32_t index) const {
  const Source &source = sources[size_t(index)];
  return source.dtype == plan->weights[size_t(index)].dtype && !source.isTransposed;
}

Status Weights::wrongChunk(int32_t index, size_t chunk) const {
  const plan::Weight &weight = plan->weights[size_t(index)];
  const int64_t start = int64_t(chunk) * hashChunkBytes, bytes = std::min(hashChunkBytes, weight.bytes - start);
  return Status::error(ErrorKind::Io, "weight '" + weight.name + "' of '" + sources[size_t(index)].path + "': bytes " +
                                          std::to_string(start) + " to " + std::to_string(start + bytes - 1) +
                                          " (chunk " + std::to_string(chunk) +
                                          ") are not those that the plan was compiled from; restore the file, or "
                                          "compile the plan again: with --no-weights it fits any weights");
}

Status Weights::convert(int32_t index) const {
  const plan::Weight &weight = plan->weights[size_t(index)];
  const Source &source = sources[size_t(index)];
  const int64_t from = byteSize(source.dtype), to = byteSize(weight.dtype), count = weight.bytes / to;
  std::vector<std::byte> ordered;
  const std::byte *elements = source.data;
  if (source.isTransposed) { // stored [columns, rows]
    const int64_t rows = weight.shape[0], columns = weight.shape[1];
    ordered.resize(size_t(count * from));
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column)
        std::memcpy(ordered.data() + (row * columns + column) * from, source.data + (column * rows + row) * from, size_t(from));
    elements = ordered.data();
  }
  std::vector<std::byte> &bytes = source.converted->bytes;
  if (source.dtype == weight.dtype) {
    bytes = std::move(ordered);
  } else {
    bytes.resize(size_t(weight.bytes));
    widen(source.dtype, elements, weight.dtype, bytes.data(), count);
  }
  for (size_t chunk = 0; chunk < weight.hashes.size(); ++chunk) {
    const int64_t start = int64_t(chunk) * hashChunkBytes;
    if (!source.verified[chunk] &&
        hashBytes(bytes.data() + start, std::min(hashChunkBytes, weight.bytes - start)) != weight.hashes[chunk])
      return wrongChunk(index, chunk);
  }
  return Status::success();
}

Expected<const std::byte *> Weights::whole(int32_t index) const {
  const Source &source = sources[size_t(index)];
  if (isStoredAsItIs(index)) {
    HPC_RETURN_IF_ERROR(checkAll(index));
    return source.data;
  }
  std::call_once(source.converted->once, [&] { source.converted->status = convert(index); });
  HPC_RETURN_IF_ERROR(source.converted->status);
  return static_cast<const std::byte *>(source.converted->bytes.data());
}

Expected<const std::byte *> Weights::content(int32_t weight) const { return whole(weight); }

Status Weights::checkChunk(int32_t index, size_t chunk) const {
  const plan::Weight &weight = plan->weights[size_t(index)];
  const Source &source = sources[size_t(index)];
  if (chunk >= weight.hashes.size() || source.verified[chunk].load(std::memory_order_relaxed))
    return Status::success();
  int64_t start = int64_t(chunk) * hashChunkBytes, bytes = std::min(hashChunkBytes, weight.bytes - start);
  if (hashBytes(source.data + start, bytes) == weight.hashes[chunk]) {
    source.verified[chunk].store(1, std::memory_order_relaxed);
    return Status::success();
  }
  return wrongChunk(index, chunk);
}

Status Weights::check(int32_t index, const std::vector<bool> &touched) const {
  for (size_t chunk = 0; chunk < touched.size(); ++chunk)
    if (touched[chunk])
      HPC_RETURN_IF_ERROR(checkChunk(index, chunk));
  return Status::success();
}

Status Weights::checkAll(int32_t weight) const {
  return check(weight, std::vector<bool>(size_t(numHashChunks(plan->weights[size_t(weight)].bytes)), true));
}

Expected<const float *> Weights::scalesOf(int32_t weight, int32_t along) const {
  Expected<const std::byte *> all = whole(weight);
  HPC_RETURN_IF_ERROR(all.status());
  return scales->of(plan->weights[size_t(weight)], along, *all);
}

Status Weights::makeScales(const plan::Binding &binding) const {
  const auto *int8 = std::get_if<plan::Int8Weight>(&binding.start);
  return int8 ? scalesOf(int8->weight, int8->along).status() : Status::success();
}

Status Weights::loadInt8(const plan::Binding &binding, const plan::Int8Weight &int8, const plan::Buffer &buffer,
                         Place place, std::byte *box) const {
  Expected<const float *> known = scalesOf(int8.weight, int8.along);
  HPC_RETURN_IF_ERROR(known.status());
  Expected<const std::byte *> all = whole(int8.weight);
  HPC_RETURN_IF_ERROR(all.status());
  if (int8.form == plan::Int8Form::Scales) {
    SliceCopy(binding.slice, byteSize(DType::F32), place).gather(reinterpret_cast<const std::byte *>(*known), box);
    return Status::success();
  }
  const Lines lines = Lines::along(plan->weights[size_t(int8.weight)].shape, size_t(int8.along));
  const std::byte *source = *all;
  const SliceCopy slice(binding.slice, 1, place);
  std::vector<int8_t> codes;
  slice.visitPart(0, slice.boxBytes(), [&](int64_t at, int64_t first, int64_t count) {
    if (int8.form == plan::Int8Form::Codes)
      return toInt8(source, lines, *known, first, count, reinterpret_cast<int8_t *>(box) + at);
    codes.resize(size_t(count));
    toInt8(source, lines, *known, first, count, codes.data());
    for (int64_t i = 0; i < count; ++i) {
      const float value = float(codes[size_t(i)]) * (*known)[lines.of(first + i)];
      if (buffer.dtype == DType::F32) {
        std::memcpy(box + (at + i) * 4, &value, 4);
      } else {
        const uint16_t bits = buffer.dtype == DType::F16 ? floatToHalf(value) : floatToBfloat(value);
        std::memcpy(box + (at + i) * 2, &bits, 2);
      }
    }
  });
  return Status::success();
}

std::optional<Weights::Parts> Weights::partsOf(const plan::Binding &binding, const plan::Buffer &buffer,
                                               Place place) const {
  const auto *stored = std::get_if<plan::StoredWeight>(&binding.start);
  if (const auto *int8 = std::get_if<plan::Int8Weight>(&binding.start); int8 && int8->form == plan::Int8Form::Codes)
    if (SliceCopy slice(binding.slice, 1, place); slice.isQuickInParts())
      return Parts{slice, int8->weight, {}, int8->along};
  if (!stored || saved.count(binding.saved) || plan->weights[size_t(stored->weight)].dtype != buffer.dtype ||
      !isStoredAsItIs(stored->weight))
    return std::nullopt;
  const int64_t elementSize = byteSize(buffer.dtype);
  SliceCopy slice(binding.slice, elementSize, place);
  if (!slice.isQuickInParts())
    return std::nullopt;
  return Parts{slice, stored->weight, touchedChunks(binding.slice, elementSize, place, hashChunkBytes)};
}

Status Weights::loadPart(const Parts &parts, int64_t begin, int64_t bytes, std::byte *target) const {
  if (parts.int8Along) {
    Expected<const float *> known = scalesOf(parts.weight, *parts.int8Along);
    HPC_RETURN_IF_ERROR(known.status());
    Expected<const std::byte *> all = whole(parts.weight);
    HPC_RETURN_IF_ERROR(all.status());
    const Lines lines = Lines::along(plan->weights[size_t(parts.weight)].shape, size_t(*parts.int8Along));
    if (parts.slice.hasPadding())
      std::memset(target, 0, size_t(bytes));
    parts.slice.visitPart(begin, bytes, [&](int64_t at, int64_t first, int64_t count) {
      toInt8(*all, lines, *known, first, count, reinterpret_cast<int8_t *>(target) + at);
    });
    return Status::success();
  }
  // Chunks that this part reads are in the caches when they are copied.
  const int64_t first = parts.slice.globalOffsetOf(begin) / hashChunkBytes,
                last = parts.slice.globalOffsetOf(begin + bytes - 1) / hashChunkBytes;
  for (int64_t chunk = first; chunk <= last; ++chunk)
    if (parts.touched[size_t(chunk)])
      HPC_RETURN_IF_ERROR(checkChunk(parts.weight, size_t(chunk)));
  parts.slice.gatherPart(sources[size_t(parts.weight)].data, target, begin, bytes);
  return Status::success();
}

Status Weights::load(const plan::Binding &binding, const plan::Buffer &buffer, Place place, Device &device,
                     std::byte *target) const {
  int64_t elementSize = byteSize(buffer.dtype);
  if (auto kept = saved.find(binding.saved); kept != saved.end()) {
    HPC_RETURN_IF_ERROR(device.gather(SliceCopy(binding.slice, elementSize, place), kept->second, target));
    dropMappedPages(kept->second, *checkedBytes(buffer.dtype, binding.shape)); // the arena has it now
    return Status::success();
  }
  // A whole buffer that stands ready in the host's memory.
  auto loadBytes = [&](const std::vector<std::byte> &content) {
    plan::Slice whole{{buffer.bytes}, {0}, {buffer.bytes}, {buffer.bytes}};
    return device.gather(SliceCopy(whole, 1, place), content.data(), target);
  };
  if (const auto *number = std::get_if<plan::Number>(&binding.start)) {
    return loadBytes(repeated(buffer.dtype, number->value, buffer.bytes / elementSize));
  }
  if (const auto *int8 = std::get_if<plan::Int8Weight>(&binding.start)) {
    std::vector<std::byte> box(size_t(buffer.bytes), std::byte(0));
    HPC_RETURN_IF_ERROR(loadInt8(binding, *int8, buffer, place, box.data()));
    return loadBytes(box);
  }
  const auto *stored = std::get_if<plan::StoredWeight>(&binding.start);
  if (!stored)
    return Status::success();
  const plan::Weight &weight = plan->weights[size_t(stored->weight)];
  const Source &origin = sources[size_t(stored->weight)];
  // A slice of what is stored, in its own type; all of it only where that is to be turned or to be proved.
  const bool isWhole = origin.isTransposed || (origin.dtype != weight.dtype && !weight.hashes.empty() && !origin.mayDiffer);
  const DType storedType = isWhole ? weight.dtype : origin.dtype;
  const std::byte *source = origin.data;
  if (isWhole) {
    Expected<const std::byte *> all = whole(stored->weight);
    HPC_RETURN_IF_ERROR(all.status());
    source = *all;
  } else if (origin.dtype == weight.dtype) {
    HPC_RETURN_IF_ERROR(check(stored->weight, touchedChunks(binding.slice, byteSize(storedType), place, hashChunkBytes)));
  }
  SliceCopy slice(binding.slice, byteSize(storedType), place);
  if (storedType == buffer.dtype)
    return device.gather(slice, source, target);
  std::vector<std::byte> box(size_t(slice.boxBytes()));
  slice.gather(source, box.data());
  const int64_t elements = buffer.bytes / elementSize;
  // By way of the type that the plan has for it, as if the file had it so; training that begins from other weights keeps all their digits.
  DType from = storedType;
  for (DType to : {origin.mayDiffer ? buffer.dtype : weight.dtype, buffer.dtype}) {
    if (from != to && isExactIn(from, to)) {
      std::vector<std::byte> wide(size_t(elements * byteSize(to)));
      widen(from, box.data(), to, wide.data(), elements);
      box = std::move(wide);
    } else if (from != to) {
      if (from != DType::F32) { // bytes, which every float holds
        std::vector<std::byte> wide(size_t(elements * byteSize(DType::F32)));
        widen(from, box.data(), DType::F32, wide.data(), elements);
        box = std::move(wide);
      }
      box = rounded(to, box.data(), elements);
    }
    from = to;
  }
  return loadBytes(box);
}

} // namespace hpc
