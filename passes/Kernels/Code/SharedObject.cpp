// lld as a library. It works on files: input and output are in a new folder of the system's temporary directory.
#include "passes/Kernels/Code/SharedObject.h"

#include "compiler/Diagnostics.h"
#include "runtime/base/File.h"

#include "lld/Common/Driver.h"
#include "llvm/ObjCopy/ConfigManager.h"
#include "llvm/ObjCopy/ObjCopy.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

LLD_HAS_DRIVER(elf)

namespace hpc::kernels {

namespace {
/// Hides all options of llvm::cl while it lives: lld resets every option that has been given, as if it owned the
/// process.
class KeptOptions {
public:
  KeptOptions() {
    for (auto &entry : llvm::cl::getRegisteredOptions())
      keep(entry.second);
    for (llvm::cl::Option *option : llvm::cl::SubCommand::getTopLevel().PositionalOpts)
      keep(option);
    for (llvm::cl::Option *option : options)
      option->removeArgument();
  }
  ~KeptOptions() {
    for (llvm::cl::Option *option : options)
      option->addArgument();
  }

private:
  void keep(llvm::cl::Option *option) {
    if (option->getNumOccurrences() > 0 && !llvm::is_contained(options, option))
      options.push_back(option);
  }
  SmallVector<llvm::cl::Option *> options;
};

/// A folder that is removed with its files at the end.
struct TemporaryFolder {
  SmallString<128> path;
  std::error_code error = llvm::sys::fs::createUniqueDirectory("hpc-kernels", path);
  ~TemporaryFolder() {
    if (!error)
      llvm::sys::fs::remove_directories(path);
  }
  std::string file(StringRef name) const {
    SmallString<128> full(path);
    llvm::sys::path::append(full, name);
    return full.str().str();
  }
};

/// The object with its function renamed: objects are made, and kept, without a name.
llvm::Error writeRenamed(const LinkedObject &object, llvm::raw_ostream &to) {
  llvm::MemoryBufferRef buffer({object.bytes.data(), object.bytes.size()}, objectFunctionName);
  auto parsed = llvm::object::ObjectFile::createObjectFile(buffer);
  if (!parsed)
    return parsed.takeError();
  llvm::objcopy::ConfigManager config;
  if (!object.symbol.empty())
    config.Common.SymbolsToRename[objectFunctionName] = object.symbol;
  return llvm::objcopy::executeObjcopyOnBinary(config, **parsed, to);
}

LogicalResult writeObject(const LinkedObject &object, const std::string &path, Location loc) {
  std::error_code error;
  llvm::raw_fd_ostream file(path, error);
  llvm::Error renamed = error ? llvm::Error::success() : writeRenamed(object, file);
  file.close();
  if (error || file.has_error()) {
    llvm::consumeError(std::move(renamed));
    std::error_code cause = error ? error : file.error();
    file.clear_error();
    return userError(loc, ErrorKind::Io) << "kernels: cannot write " << path << ": " << writeErrorText(cause.value());
  }
  if (renamed)
    return userError(loc, ErrorKind::Internal) << "kernels: an object cannot be read: " << llvm::toString(std::move(renamed));
  return success();
}
} // namespace

FailureOr<std::string> linkSharedObject(ArrayRef<LinkedObject> objects, Location loc) {
  TemporaryFolder folder;
  if (folder.error)
    return userError(loc, ErrorKind::Io) << "kernels: no temporary folder: " << folder.error.message();
  std::string output = folder.file("kernels.so");
  std::vector<std::string> inputs;
  for (auto [number, object] : llvm::enumerate(objects)) {
    inputs.push_back(folder.file(std::to_string(number) + ".o"));
    if (failed(writeObject(object, inputs.back(), loc)))
      return failure();
  }
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  // libm's functions stay undefined: the process that loads the object has them.
  std::vector<const char *> arguments = {"ld.lld",      "-shared", "--strip-all", "--build-id=none", "--hash-style=gnu",
                                         "--threads=1", "-z",      "noexecstack", "-o",              output.c_str()};
  for (const std::string &input : inputs)
    arguments.push_back(input.c_str());
  KeptOptions options;
  lld::Result result = lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0 || !result.canRunAgain)
    return userError(loc, ErrorKind::Internal) << "kernels: lld: " << messages;
  auto linked = llvm::MemoryBuffer::getFile(output);
  if (!linked)
    return userError(loc, ErrorKind::Io) << "kernels: cannot read " << output << ": " << linked.getError().message();
  return (*linked)->getBuffer().str();
}

} // namespace hpc::kernels
