// An .npz with an array for each input as the data of steps, a batch a step: in the order of the file, over and over, or in a new order each
// epoch. The file stays mapped, and a batch is converted when it is taken: memory does not grow with the data.
#pragma once

#include "runtime/base/File.h"
#include "runtime/base/Npy.h"
#include "runtime/plan/Plan.h"
#include "runtime/train/RowRange.h"
#include "runtime/train/StepData.h"

#include <memory>
#include <string>
#include <vector>

namespace hpc {

struct BatchOptions {
  std::optional<int64_t> shuffleSeed; ///< of the order; none: that of the file
  RowRange range;                     ///< of batches
};

class Batches : public StepData {
public:
  /// An array for each input of the plan by its name, [batches, ...shape of the input] or one batch. A missing input with a default takes the
  /// data of that other input (labels of language models, which the step shifts). Whole numbers are converted to the input's type, and f64 to
  /// f32; values that do not fit are an error. `notes`: receives facts that the user should know and that are no error.
  static Expected<Batches> open(const plan::Plan &plan, const std::string &path, const BatchOptions &options, std::vector<std::string> &notes);

  int64_t count() const override { return batches; }
  int64_t sampleOf(int64_t step) const override;
  Status fill(int64_t step, std::vector<Array> &inputs) const override;
  std::string findNumber(int64_t step, bool (*is)(double)) const override;
  uint64_t fingerprint() const override;
  std::string summary() const override;

private:
  /// All batches of one input, in the type that the file has.
  struct Source {
    bool isGiven = false;
    DType dtype = DType::F32;
    const std::byte *data = nullptr; ///< not aligned
    int64_t batchBytes = 0;
    std::string place; ///< for messages
  };
  Status takeArchive(std::vector<std::string> &notes);
  /// That numbers fit the plan's types, ids name rows and labels classes, in all batches, so that no step is the first to find out.
  Status checkNumbers() const;
  Status cycle(size_t input, const NpyView &array, const std::string &place);
  Status cycle(size_t input, const Source &source, int64_t given, const std::string &place);
  NpyView inRowOrder(const NpyView &array, std::string &storage);

  const plan::Plan *plan = nullptr;
  std::string path;
  BatchOptions options;
  MappedFile file;
  std::vector<std::unique_ptr<std::string>> unpacked; ///< arrays that do not lie in the file as they are
  int64_t batches = 0;
  std::vector<Source> sources; ///< per input of the plan; not given: a step scalar
};

} // namespace hpc
