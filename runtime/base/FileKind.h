// The kind of a file by its content: a magic number, or a structure that holds from the first byte to the last.
// The name of the file plays no part.
#pragma once

#include <string>
#include <string_view>

namespace hpc {

enum class FileKind {
  Unknown, ///< raw bytes, external data of an ONNX model and tokens of 16 bits among them; or a file that is cut off
  Empty,
  SafeTensors,
  SafeTensorsIndex, ///< model.safetensors.index.json: which shard holds which tensor
  Onnx,
  Plan,
  Npz,
  Npy,
  TorchArchive, ///< torch.save: a zip archive with a pickle
  Pickle,       ///< of Python, and of older versions of torch.save
  Zip,          ///< another zip archive, or a damaged one
  Gguf,
  Hdf5,
  LfsPointer, ///< of Git LFS, where the file itself was not fetched
  Executable,
  Json,
  Text,
};

FileKind fileKindOf(std::string_view content);

/// A noun phrase: "an ONNX model".
const char *describe(FileKind kind);

/// The tool that takes such a file, or how to convert it for one; "" for kinds that no tool takes.
std::string useOf(FileKind kind);

/// ": it is an ONNX model; ..." for a message that names the expected kind; "" for an unknown kind.
std::string whatItIs(FileKind kind);

} // namespace hpc
