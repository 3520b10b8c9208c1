// The data of a run, as the inputs of one step after the other. The step alone decides which data it takes, so a run that
// continues from a checkpoint takes what an uninterrupted one would.
#pragma once

#include "runtime/base/Array.h"
#include "runtime/base/Status.h"

#include <string>
#include <vector>

namespace hpc {

class StepData {
public:
  virtual ~StepData() = default;

  /// Batches of an epoch; at least 1. The last one may take its missing rows from the next epoch.
  virtual int64_t count() const = 0;
  /// The epoch, from 0, of the first row of a step.
  virtual int64_t epochOf(int64_t step) const { return step / count(); }
  /// How many rows the steps before have taken.
  virtual int64_t sampleOf(int64_t step) const { return step; }
  /// The number of a step in its epoch, from 0.
  int64_t batchOf(int64_t step) const;
  /// The number of steps in which all data are used so many times: the next one belongs to the epoch after them.
  int64_t stepsOf(int64_t epochs) const;
  /// Fills all inputs except step scalars; `inputs` has the order of the plan's inputs. Threads may call it at once.
  virtual Status fill(int64_t step, std::vector<Array> &inputs) const = 0;
  /// "input 'x' of its batch holds nan at [1, 2]": the first float that `step` takes and that `is` holds of; "" where none is.
  virtual std::string findNumber(int64_t step, bool (*is)(double)) const = 0;
  /// A hash of all data and of their order, which distinguishes runs.
  virtual uint64_t fingerprint() const = 0;
  /// For people, with the fingerprint: "3 batches of x 6x5, t 6x7 (0123456789abcdef)".
  virtual std::string summary() const = 0;
};

} // namespace hpc
