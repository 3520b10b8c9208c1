// Scales of weights that are held in int8, each made once for all ranks of the process: they are those of whole lines of
// what is stored, of which a rank may hold a part alone.
#pragma once

#include "runtime/base/Int8.h"
#include "runtime/base/Status.h"
#include "runtime/plan/Plan.h"

#include <map>
#include <memory>
#include <mutex>

namespace hpc {

class WeightScales {
public:
  /// Of the f32 tensor `data`, by number of the line (Int8.h). From several threads at once; whoever comes while they are
  /// made waits. An error where an element is not finite.
  Expected<const float *> of(const plan::Weight &weight, int32_t along, const std::byte *data);

private:
  struct Scales {
    std::once_flag once;
    std::vector<float> values;
    Status status;
  };
  std::mutex mutex; ///< of the map; its entries stay where they are
  std::map<std::pair<const plan::Weight *, int32_t>, Scales> known;
};

} // namespace hpc
