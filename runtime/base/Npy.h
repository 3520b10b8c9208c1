// NumPy's .npy format, versions 1 to 3: one array with a small header in Python's syntax.
// Big-endian and structured types are refused; Fortran order is converted on reading.
#pragma once

#include "runtime/base/Array.h"
#include "runtime/base/Status.h"

#include <string_view>

namespace hpc {

/// An array in place: the fields of its header, and its data, with the size that type and shape require.
struct NpyView {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  bool fortranOrder = false; ///< and of rank 2 or more, and not empty
  std::string_view data;     ///< not aligned
};
/// `name`: the array's name in errors, e.g. "inputs.npz: 'input_ids'".
Expected<NpyView> viewNpy(std::string_view bytes, const std::string &name);
/// A copy in row-major order.
Array toArray(const NpyView &view);
Expected<Array> parseNpy(std::string_view bytes, const std::string &name);

/// The header (version 1.0) before array.data. bf16, which NumPy lacks, is written as by ml_dtypes: `<V2`.
std::string npyHeader(const Array &array);

Expected<Array> readNpy(const std::string &path);
Status writeNpy(const std::string &path, const Array &array);

} // namespace hpc
