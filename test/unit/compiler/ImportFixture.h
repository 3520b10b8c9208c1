// Helpers for tests that import ONNX files and run them in the interpreter.
#pragma once

#include "compiler/Dialect/NN/Ports.h"
#include "compiler/Import/OnnxImporter.h"
#include "compiler/Interpreter/Interpreter.h"
#include "runtime/base/Npz.h"
#include "llvm/Support/FileSystem.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

namespace hpc {

inline std::string sourcePath(const std::string &relative) { return std::string(HPC_SOURCE_DIR) + "/" + relative; }

inline func::FuncOp mainOf(ModuleOp module) { return module.lookupSymbol<func::FuncOp>("main"); }

/// How many ops of that name the program has.
inline int64_t countOps(ModuleOp module, StringRef name) {
  int64_t count = 0;
  module.walk([&](Operation *op) { count += op->getName().getStringRef() == name; });
  return count;
}

/// Runs @main on the arrays that its arguments are named after.
inline Expected<std::vector<Tensor>> runImported(ModuleOp module, const NamedArrays &arrays, bool doublePrecision) {
  std::vector<Tensor> inputs;
  func::FuncOp function = mainOf(module);
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    std::string wanted = nn::argumentPort(function, i).name;
    bool found = false;
    for (const auto &[name, array] : arrays)
      if (!found && wanted == name) {
        inputs.push_back(tensorFromArray(array));
        found = true;
      }
    if (!found)
      return Status::error(ErrorKind::Usage, "no input " + wanted);
  }
  RunOptions options;
  options.doublePrecision = doublePrecision;
  return runFunction(function, inputs, options);
}

inline const Array *findArray(const NamedArrays &arrays, const std::string &name) {
  for (const auto &[each, array] : arrays)
    if (each == name)
      return &array;
  return nullptr;
}

/// A folder that goes away with the object. In memory where it can be: each model that is written is synced, and a thousand
/// tests would wait for the disk.
struct TemporaryFolder {
  TemporaryFolder() {
    char inMemory[] = "/dev/shm/hpc-import-XXXXXX", onDisk[] = "/tmp/hpc-import-XXXXXX";
    const char *made = mkdtemp(inMemory);
    path = made ? made : mkdtemp(onDisk);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); } // pipes and devices too
  std::string file(const std::string &name) const { return path + "/" + name; }
  std::string path;
};

} // namespace hpc
