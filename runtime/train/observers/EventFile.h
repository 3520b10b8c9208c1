// Files of events as TensorBoard reads them: TFRecords, each a length and a protobuf message Event with their masked CRC32C.
#pragma once

#include "runtime/base/LineFile.h"

#include <utility>
#include <vector>

namespace hpc {

/// Names and values of one step.
using Scalars = std::vector<std::pair<std::string, double>>;

/// CRC-32C (Castagnoli), rotated and shifted as TFRecord has it.
uint32_t maskedChecksum(const std::string &bytes);
/// A TFRecord that holds `bytes`.
std::string recordOf(const std::string &bytes);

class EventFile {
public:
  /// A new file in `folder`, which is made where it is not there: "events.out.tfevents.SECONDS.HOST.PROCESS", after all others by name. `time`: seconds
  /// since 1970. Readers forget what earlier files of the folder have of step `first` and later ones.
  static Expected<EventFile> open(const std::string &folder, double time, int64_t first);
  /// Values are stored as f32.
  Status add(double time, int64_t step, const Scalars &scalars);

private:
  explicit EventFile(LineFile file) : file(std::move(file)) {}
  LineFile file;
};

} // namespace hpc
