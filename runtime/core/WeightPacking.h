// Weights that a rank's device may keep in a form of its own (plan::Operand::packed), with all products that read them.
#pragma once

#include "runtime/core/Arena.h"

#include <map>

namespace hpc {

class WeightPacking {
public:
  /// `product` is one that has prepared handles, of any entry of the plan; it outlives this.
  void add(const plan::Gemm &product, const std::vector<GemmHandle> &handles);
  /// Offers each weight to the device, once all products of the rank are known.
  Status pack(const plan::Stage &stage, const Arena &arena, Device &device) const;

private:
  struct Use {
    const plan::Gemm *product = nullptr;
    std::vector<GemmHandle> handles;
  };
  std::map<int32_t, Use> uses; ///< by buffer
};

} // namespace hpc
