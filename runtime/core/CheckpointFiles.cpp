// The fingerprint follows from names and bytes alone, so that the same run saves the same files on any layout.
#include "runtime/core/CheckpointFiles.h"

#include "runtime/base/Hash.h"

#include <cstdio>
#include <filesystem>

namespace hpc {

std::string checkpointFile(const std::string &path) {
  std::error_code error;
  if (path.empty() || (path.back() != '/' && !std::filesystem::is_directory(path, error)))
    return path;
  return path + (path.back() == '/' ? "" : "/") + "model.safetensors";
}

std::string statesFile(const std::string &weights) {
  constexpr std::string_view ending = ".safetensors";
  const bool hasEnding = weights.size() > ending.size() &&
                         weights.compare(weights.size() - ending.size(), ending.size(), ending) == 0;
  return weights.substr(0, weights.size() - (hasEnding ? ending.size() : 0)) + ".states";
}

std::string previousStatesFile(const std::string &weights) { return statesFile(weights) + ".previous"; }

std::string belongsTo(uint64_t fingerprint) {
  char text[24];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(fingerprint));
  return text;
}

uint64_t fingerprintOf(const std::byte *data, int64_t bytes, uint64_t before) {
  constexpr int64_t pieces = 16, pieceBytes = 64 << 10;
  std::vector<uint64_t> hashes = {before, uint64_t(bytes)};
  if (bytes <= hashChunkBytes)
    hashes.push_back(hashBytes(data, bytes));
  else
    for (int64_t piece = 0; piece < pieces; ++piece)
      hashes.push_back(hashBytes(data + (bytes - pieceBytes) / (pieces - 1) * piece, pieceBytes));
  return hashBytes(hashes.data(), int64_t(hashes.size() * sizeof(uint64_t)));
}

uint64_t fingerprintOf(const std::string &text, uint64_t before) {
  return fingerprintOf(reinterpret_cast<const std::byte *>(text.data()), int64_t(text.size()), before);
}

uint64_t fingerprintOfPrints(const std::map<std::string, uint64_t> &prints) {
  uint64_t combined = 0;
  for (const auto &[name, print] : prints)
    combined = fingerprintOf(reinterpret_cast<const std::byte *>(&print), sizeof(print), combined);
  return combined;
}

uint64_t fingerprintOf(const NamedTensorMap &tensors) {
  std::map<std::string, uint64_t> prints;
  for (const auto &[name, tensor] : tensors)
    prints[name] = fingerprintOf(tensor.data, tensor.bytes, fingerprintOf(name, 0));
  return fingerprintOfPrints(prints);
}

} // namespace hpc
