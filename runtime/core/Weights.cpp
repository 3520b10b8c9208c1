// Resolves each tensor to bytes of a mapped file (or of the plan), then gathers slices out of them.
#include "runtime/core/Weights.h"

#include "runtime/base/Array.h"
#include "runtime/base/HalfFloat.h"
#include "runtime/base/Hash.h"
#include "runtime/core/SafeTensors.h"
#include "runtime/core/SavedTensors.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace hpc {

namespace {

std::string baseName(const std::string &path) { return path.substr(path.rfind('/') + 1); }

bool isSafeTensors(const std::string &path) {
  constexpr std::string_view ending = ".safetensors";
  return path.size() >= ending.size() && path.compare(path.size() - ending.size(), ending.size(), ending) == 0;
}

/// `count` elements of one value.
template <typename T> std::vector<std::byte> repeatedAs(T value, int64_t count) {
  std::vector<std::byte> bytes(size_t(count) * sizeof(T));
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(bytes.data() + size_t(i) * sizeof(T), &value, sizeof(T));
  return bytes;
}

/// `count` f16 or bf16 at `from` as f32, which holds them exactly.
std::vector<std::byte> widened(DType dtype, const std::byte *from, int64_t count) {
  std::vector<std::byte> bytes(size_t(count) * 4);
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits;
    std::memcpy(&bits, from + i * 2, sizeof(bits));
    const float value = dtype == DType::F16 ? halfToFloat(bits) : bfloatToFloat(bits);
    std::memcpy(bytes.data() + i * 4, &value, sizeof(value));
  }
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

/// The file of the plan that `replacement` stands in for.
Expected<size_t> replacedFile(const plan::Plan &plan, const std::string &replacement) {
  if (plan.files.size() == 1)
    return size_t(0);
  std::string names;
  for (size_t i = 0; i < plan.files.size(); ++i) {
    if (baseName(plan.files[i].path) == baseName(replacement))
      return i;
    names += (i ? ", " : "") + baseName(plan.files[i].path);
  }
  return Status::error(ErrorKind::Usage, "--weights=" + replacement + ": the plan reads " +
                                             (names.empty() ? std::string("no weight file")
                                                            : "several files (" + names +
                                                                  "); give a file with one of these names, the folder "
                                                                  "of all, or a .safetensors file"));
}

/// A tensor of which the compiler has seen the shape alone.
bool isAbsent(const plan::Weight &weight) { return weight.file >= 0 && weight.bytes > 0 && weight.hashes.empty(); }

} // namespace

Status Weights::checkContentIsKnown() const {
  const plan::Weight *first = nullptr;
  int64_t count = 0;
  for (const plan::Weight &weight : plan->weights)
    if (isAbsent(weight) && ++count == 1)
      first = &weight;
  if (count == 0)
    return Status::success();
  return Status::error(ErrorKind::Usage, "the plan was compiled without weights: '" + first->name + "' (" +
                                             shapeText(first->shape) + " of " + name(first->dtype) + ")" +
                                             (count > 1 ? " and " + std::to_string(count - 1) + " more" : "") +
                                             " must come by --weights: a .safetensors file with the tensors' names, or "
                                             "the model's external data (file or folder)");
}

Status Weights::openFiles(const std::string &folder, const std::string &replacement) {
  std::vector<std::string> paths;
  for (const plan::WeightFile &file : plan->files)
    paths.push_back(resolvePath(folder, file.path));
  if (isSafeTensors(replacement)) {
    paths = {replacement};
  } else if (std::filesystem::is_directory(replacement)) {
    for (std::string &path : paths)
      path = resolvePath(replacement, baseName(path));
  } else if (!replacement.empty()) {
    Expected<size_t> index = replacedFile(*plan, replacement);
    if (!index.ok())
      return index.status();
    paths[*index] = replacement;
  }
  for (const std::string &path : paths) {
    Expected<MappedFile> file = MappedFile::open(path);
    if (!file.ok())
      return Status::error(ErrorKind::Io,
                           file.status().message() + " (weights of the plan; --weights=FILE names another place)");
    files.push_back(std::move(*file));
  }
  return Status::success();
}

Status Weights::resolveByOffset() {
  for (size_t i = 0; i < sources.size(); ++i) {
    const plan::Weight &weight = plan->weights[i];
    if (weight.file < 0)
      continue;
    const MappedFile &file = files[size_t(weight.file)];
    Expected<const std::byte *> range = file.range(weight.offset, weight.bytes, "weight '" + weight.name + "'");
    if (!range.ok())
      return Status::error(ErrorKind::Io, range.status().message() +
                                              "; give the file that the plan was compiled from, or compile again");
    sources[i].data = *range;
    sources[i].path = file.path();
  }
  return Status::success();
}

Status Weights::resolveByName() {
  const MappedFile &file = files[0];
  Expected<std::map<std::string, SafeTensor>> named = readSafeTensors(file);
  if (!named.ok())
    return named.status();
  for (size_t i = 0; i < sources.size(); ++i) {
    const plan::Weight &weight = plan->weights[i];
    if (weight.file < 0)
      continue;
    std::string wanted = shapeText(weight.shape) + " of " + name(weight.dtype);
    auto found = named->find(weight.name);
    if (found == named->end())
      return Status::error(ErrorKind::Io, "'" + file.path() + "': has no tensor '" + weight.name +
                                              "' that the plan needs (" + wanted +
                                              "); tensors go by the names of the ONNX file");
    if (found->second.dtype != weight.dtype || found->second.shape != weight.shape)
      return Status::error(ErrorKind::Io, "'" + file.path() + "': tensor '" + weight.name + "' is " +
                                              shapeText(found->second.shape) + " of " + name(found->second.dtype) +
                                              ", the plan needs " + wanted +
                                              "; compile the model again for other shapes");
    sources[i].data = found->second.data;
    sources[i].path = file.path();
  }
  return Status::success();
}

Status Weights::resolveSaved(const std::string &checkpoint) {
  checkpointPath = checkpoint;
  Expected<MappedFile> file = MappedFile::open(checkpoint);
  if (!file.ok())
    return file.status();
  files.push_back(std::move(*file));
  Expected<std::map<std::string, SafeTensor>> named = readSafeTensors(files.back());
  if (!named.ok())
    return named.status();
  auto matches = [&](const std::string &tensor, const SafeTensor &found, DType dtype, const std::vector<int64_t> &shape) {
    if (found.dtype == dtype && found.shape == shape)
      return Status::success();
    return Status::error(ErrorKind::Usage, "'" + checkpoint + "': tensor '" + tensor + "' is " + shapeText(found.shape) +
                                               " of " + name(found.dtype) + ", the plan keeps " + shapeText(shape) +
                                               " of " + name(dtype) + "; give a checkpoint of this model");
  };
  for (const SavedTensor &tensor : savedTensors(*plan)) {
    std::string wanted = shapeText(tensor.shape) + " of " + name(tensor.dtype);
    auto found = named->find(tensor.name);
    if (found == named->end())
      return Status::error(ErrorKind::Usage, "'" + checkpoint + "': has no tensor '" + tensor.name + "' (" + wanted +
                                                 "), which the plan keeps from step to step; give a checkpoint of this "
                                                 "model and optimizer, or compile with the --optimizer and --freeze of "
                                                 "the run that wrote it");
    HPC_RETURN_IF_ERROR(matches(tensor.name, found->second, tensor.dtype, tensor.shape));
    saved[tensor.name] = found->second.data;
  }
  for (int32_t index : onlyRead()) {
    const plan::Weight &weight = plan->weights[size_t(index)];
    auto found = named->find(weight.name);
    if (found == named->end())
      continue;
    HPC_RETURN_IF_ERROR(matches(weight.name, found->second, weight.dtype, weight.shape));
    Source &source = sources[size_t(index)];
    source.data = found->second.data;
    source.path = checkpoint;
    for (int64_t chunk = 0; chunk < numHashChunks(weight.bytes); ++chunk)
      source.verified[size_t(chunk)] = 1;
  }
  return Status::success();
}

std::vector<int32_t> Weights::onlyRead() const {
  std::map<std::string, int32_t> byName;
  for (size_t i = 0; i < plan->weights.size(); ++i)
    if (plan->weights[i].file >= 0)
      byName.try_emplace(plan->weights[i].name, int32_t(i));
  for (const SavedTensor &tensor : savedTensors(*plan))
    byName.erase(tensor.name);
  std::vector<int32_t> indices;
  for (auto &[name, index] : byName)
    indices.push_back(index);
  return indices;
}

Expected<const std::byte *> Weights::content(int32_t weight) const {
  HPC_RETURN_IF_ERROR(checkAll(weight));
  return sources[size_t(weight)].data;
}

Expected<Weights> Weights::open(const plan::Plan &plan, const std::string &folder, const std::string &replacement,
                                const std::string &checkpoint) {
  Weights weights;
  weights.plan = &plan;
  for (const plan::Weight &weight : plan.weights) {
    Source source;
    size_t chunks = size_t(numHashChunks(weight.bytes));
    source.verified = std::make_unique<std::atomic<uint8_t>[]>(chunks);
    for (size_t chunk = 0; chunk < chunks; ++chunk)
      source.verified[chunk] = 0;
    source.data = reinterpret_cast<const std::byte *>(weight.inlineData.data());
    source.path = "the plan";
    weights.sources.push_back(std::move(source));
  }
  if (replacement.empty())
    HPC_RETURN_IF_ERROR(weights.checkContentIsKnown());
  HPC_RETURN_IF_ERROR(weights.openFiles(folder, replacement));
  HPC_RETURN_IF_ERROR(isSafeTensors(replacement) ? weights.resolveByName() : weights.resolveByOffset());
  if (!checkpoint.empty())
    HPC_RETURN_IF_ERROR(weights.resolveSaved(checkpoint));
  return weights;
}

/// Of a large tensor some pieces, the first and the last of which are its ends.
static uint64_t hashOfPieces(const std::byte *data, int64_t bytes, uint64_t before) {
  constexpr int64_t pieces = 16, pieceBytes = 64 << 10;
  std::vector<uint64_t> hashes = {before, uint64_t(bytes)};
  if (bytes <= hashChunkBytes)
    hashes.push_back(hashBytes(data, bytes));
  else
    for (int64_t piece = 0; piece < pieces; ++piece)
      hashes.push_back(hashBytes(data + (bytes - pieceBytes) / (pieces - 1) * piece, pieceBytes));
  return hashBytes(reinterpret_cast<const std::byte *>(hashes.data()), int64_t(hashes.size() * sizeof(uint64_t)));
}

uint64_t Weights::fingerprint() const {
  uint64_t combined = 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    const plan::Weight &weight = plan->weights[i];
    if (isAbsent(weight))
      combined = hashOfPieces(sources[i].data, weight.bytes, combined);
  }
  return combined;
}

uint64_t Weights::checkpointFingerprint() const {
  if (checkpointPath.empty())
    return 0;
  std::map<std::string, std::string> metadata;
  Expected<std::map<std::string, SafeTensor>> named = readSafeTensors(files.back(), &metadata);
  if (!named.ok())
    return 0;
  std::string about;
  for (auto &[key, text] : metadata)
    about += key + "=" + text + "\n";
  uint64_t combined = hashBytes(reinterpret_cast<const std::byte *>(about.data()), int64_t(about.size()));
  for (auto &[tensor, entry] : *named) {
    combined = hashOfPieces(reinterpret_cast<const std::byte *>(tensor.data()), int64_t(tensor.size()), combined);
    combined = hashOfPieces(entry.data, checkedBytes(entry.dtype, entry.shape).value_or(0), combined);
  }
  return combined;
}

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
  return Status::error(ErrorKind::Io, "weight '" + weight.name + "' of '" + source.path + "': bytes " +
                                          std::to_string(start) + " to " + std::to_string(start + bytes - 1) +
                                          " (chunk " + std::to_string(chunk) +
                                          ") are not those that the plan was compiled from; restore the file, or "
                                          "compile the plan again: with --no-weights it fits any weights");
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
  HPC_RETURN_IF_ERROR(checkAll(weight));
  return scales->of(plan->weights[size_t(weight)], along, sources[size_t(weight)].data);
}

Status Weights::makeScales(const plan::Binding &binding) const {
  const auto *int8 = std::get_if<plan::Int8Weight>(&binding.start);
  return int8 ? scalesOf(int8->weight, int8->along).status() : Status::success();
}

Status Weights::loadInt8(const plan::Binding &binding, const plan::Int8Weight &int8, const plan::Buffer &buffer,
                         Place place, std::byte *box) const {
  Expected<const float *> known = scalesOf(int8.weight, int8.along);
  if (!known.ok())
    return known.status();
  if (int8.form == plan::Int8Form::Scales) {
    SliceCopy(binding.slice, byteSize(DType::F32), place).gather(reinterpret_cast<const std::byte *>(*known), box);
    return Status::success();
  }
  const Lines lines = Lines::along(plan->weights[size_t(int8.weight)].shape, size_t(int8.along));
  const std::byte *source = sources[size_t(int8.weight)].data;
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
  if (!stored || saved.count(binding.saved) || plan->weights[size_t(stored->weight)].dtype != buffer.dtype)
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
    if (!known.ok())
      return known.status();
    const Lines lines = Lines::along(plan->weights[size_t(parts.weight)].shape, size_t(*parts.int8Along));
    if (parts.slice.hasPadding())
      std::memset(target, 0, size_t(bytes));
    parts.slice.visitPart(begin, bytes, [&](int64_t at, int64_t first, int64_t count) {
      toInt8(sources[size_t(parts.weight)].data, lines, *known, first, count, reinterpret_cast<int8_t *>(target) + at);
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
  if (auto kept = saved.find(binding.saved); kept != saved.end())
    return device.gather(SliceCopy(binding.slice, elementSize, place), kept->second, target);
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
  const DType storedType = plan->weights[size_t(stored->weight)].dtype;
  const int64_t storedSize = byteSize(storedType);
  HPC_RETURN_IF_ERROR(check(stored->weight, touchedChunks(binding.slice, storedSize, place, hashChunkBytes)));
  SliceCopy slice(binding.slice, storedSize, place);
  const std::byte *source = sources[size_t(stored->weight)].data;
  if (storedType == buffer.dtype)
    return device.gather(slice, source, target);
  std::vector<std::byte> box(size_t(slice.boxBytes()));
  slice.gather(source, box.data());
  const int64_t count = buffer.bytes / elementSize;
  return loadBytes(buffer.dtype == DType::F32 ? widened(storedType, box.data(), count) : rounded(buffer.dtype, box.data(), count));
}

} // namespace hpc
