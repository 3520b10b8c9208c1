// What --data names, as the inputs of one step after the other: an .npz with an array for each input, or one long stream of
// tokens. Step s takes batch s, and begins again behind the last one.
#pragma once

#include "runtime/base/File.h"
#include "runtime/base/Array.h"
#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"

#include <string>
#include <vector>

namespace hpc {

class Batches {
public:
  /// FILE.npz: an array for each input of the plan by its name, [batches, ...shape of the input] or one batch. Where
  /// an input is missing that has a default, its data are that one's (labels of language models, which the step shifts).
  /// FILE.npy (one dim of integers) or FILE.bin (16-bit, little endian): tokens; row after row takes its own piece.
  /// Whole numbers are converted to the input's type, and f64 to f32; what does not fit is an error.
  /// `notes`: what the user should know and no error says.
  static Expected<Batches> open(const plan::Plan &plan, const std::string &path, std::vector<std::string> &notes);

  int64_t count() const { return batches; }
  /// Fills what is no step scalar; `inputs` stand in the order of the plan's inputs.
  Status fill(int64_t step, std::vector<Array> &inputs) const;
  /// "input 'x' of its batch holds nan at [1, 2]": the first float that `step` takes and that `is` holds of; "" where none is.
  std::string findNumber(int64_t step, bool (*is)(double)) const;
  /// Tells two data sets apart: of all that is in them.
  uint64_t fingerprint() const;
  /// For people, with the fingerprint: "3 batches of x 6x5, t 6x7 (0123456789abcdef)".
  std::string summary() const;

private:
  Status takeArchive(NamedArrays arrays, const std::string &path);
  Status takeStream(Array tokens, const std::string &path);
  /// That ids name rows and labels classes, in all batches, so that no step is the first to find out.
  Status checkNumbers(const std::string &path) const;
  Status cycle(size_t input, Array source, const std::string &place);

  const plan::Plan *plan = nullptr;
  int64_t batches = 0;
  std::vector<Array> sources; ///< per input of the plan: [batches] + its shape, of its type; empty for a step scalar
};

} // namespace hpc
