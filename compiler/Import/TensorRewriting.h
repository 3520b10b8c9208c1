// The stored tensors of an .onnx file, and the same file with other elements in them. The rest is copied byte by byte: an old schema loses nothing.
#pragma once

#include "runtime/base/DType.h"
#include "runtime/base/File.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace hpc::onnx {

/// A TensorProto of the main graph or of a subgraph: an initializer, or the value of a Constant node. Functions of the model are not looked into.
struct TensorPlace {
  /// Names by which the import knows it, the likeliest first: in a subgraph "NODE/ATTRIBUTE/name", then "name".
  std::vector<std::string> names;
  std::optional<DType> dtype; ///< none: a type that DType does not have
  std::vector<int64_t> shape;
  bool isExternal = false;    ///< its elements are in a file of external data
  std::string location;       ///< of that file, as the model has it
  int64_t offset = 0;         ///< in that file
  int64_t bytes = 0;          ///< of all elements; 0 where there is neither a dtype nor a length of external data
};

/// All of them, in the order of the file. Error (Model): a malformed file.
Expected<std::vector<TensorPlace>> tensorPlaces(const MappedFile &model);

/// Calls `write` with all bytes of a tensor's elements, row-major and little endian, in pieces.
using WriteBytes = std::function<Status(const std::byte *data, int64_t bytes)>;
using ElementSource = std::function<Status(const WriteBytes &write)>;

/// The new elements of a TensorPlace.
struct NewElements {
  ElementSource source; ///< empty: the elements stay
  std::optional<int64_t> offset; ///< of external data: the place in the new file
};

/// Writes the model with `elements`, one for each place. `location`: the name of the new file of external data beside it. Elements keep their field where it
/// has the same bytes again, and are raw_data otherwise. Memory: the structure of the file, and what sources hold.
Status rewriteTensors(const MappedFile &model, const std::vector<TensorPlace> &places, const std::vector<NewElements> &elements,
                      const std::string &location, AtomicFile &file);

} // namespace hpc::onnx
