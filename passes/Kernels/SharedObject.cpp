// lld as a library. It works on files: both sides of it live in a fresh folder of the system's temporary directory.
#include "passes/Kernels/SharedObject.h"

#include "compiler/Diagnostics.h"

#include "lld/Common/Driver.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

LLD_HAS_DRIVER(elf)

namespace hpc::kernels {

namespace {
/// lld resets every option of llvm::cl that has been given, as if it owned the process. While this lives, none can be
/// found.
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

/// A folder that goes away with its files.
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

} // namespace

FailureOr<std::string> linkSharedObject(ArrayRef<char> object, Location loc) {
  TemporaryFolder folder;
  if (folder.error)
    return userError(loc, ErrorKind::Io) << "kernels: no temporary folder: " << folder.error.message();
  std::string input = folder.file("kernels.o"), output = folder.file("kernels.so");
  std::error_code error;
  {
    llvm::raw_fd_ostream file(input, error);
    file.write(object.data(), object.size());
    file.close();
    if (error || file.has_error())
      return userError(loc, ErrorKind::Io)
             << "kernels: cannot write " << input << ": " << (error ? error : file.error()).message();
  }
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  // libm's functions stay undefined: the process that loads the object has them.
  const char *arguments[] = {
      "ld.lld", "-shared",     "--strip-all", "--build-id=none", "--hash-style=gnu", "--threads=1",
      "-z",     "noexecstack", "-o",          output.c_str(),    input.c_str()};
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
