// Reads the ELF notes of the loaded objects, as the dynamic linker lists them. A flag is LLVM's if it lies in LLVM's
// library; with static LLVM a program's own flags count too, which costs it its cache, never a wrong entry.
#include "passes/Kernels/Code/CompilerIdentity.h"

#include "runtime/base/File.h"
#include "runtime/base/Hash.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"

#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <set>

namespace hpc::kernels {

/// The build id as hexadecimal digits; empty without one.
static std::string buildId(const dl_phdr_info &object) {
  auto aligned = [](size_t size, size_t alignment) { return (size + alignment - 1) / alignment * alignment; };
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr) &segment = object.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE)
      continue;
    const char *notes = reinterpret_cast<const char *>(object.dlpi_addr + segment.p_vaddr);
    size_t alignment = segment.p_align == 8 ? 8 : 4;
    for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= segment.p_memsz;) {
      ElfW(Nhdr) note;
      std::memcpy(&note, notes + at, sizeof(note));
      size_t name = at + sizeof(note), content = name + aligned(note.n_namesz, alignment);
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !std::memcmp(notes + name, "GNU", 4))
        return llvm::toHex(llvm::StringRef(notes + content, note.n_descsz), /*LowerCase=*/true);
      at = content + aligned(note.n_descsz, alignment);
    }
  }
  return "";
}

namespace {
struct Objects {
  std::string text;
  Status status = Status::success();
};
} // namespace

/// A name is no identity; the bytes are.
static Status addHash(const char *name, std::string &text) {
  Expected<MappedFile> file = MappedFile::open(*name ? name : "/proc/self/exe");
  if (!file.ok())
    return Status::error(ErrorKind::Io, std::string("'") + name + "' has no build id and cannot be read (" +
                                            file.status().message() + ")");
  text += "hash " + std::to_string(hashBytes(file->data(), file->size()));
  return Status::success();
}

static int addObject(dl_phdr_info *object, size_t, void *to) {
  auto &objects = *static_cast<Objects *>(to);
  std::string id = buildId(*object);
  objects.text += id;
  if (id.empty())
    objects.status = addHash(object->dlpi_name, objects.text);
  objects.text += "\n";
  return !objects.status.ok(); // which ends the walk
}

Expected<std::string> identifyCompiler() {
  Objects objects{"LLVM " LLVM_VERSION_STRING "\n"};
  dl_iterate_phdr(addObject, &objects);
  if (!objects.status.ok())
    return objects.status;
  return objects.text;
}

std::string givenFlagsOfLLVM() {
  auto libraryOf = [](const void *address) {
    Dl_info info = {};
    return ::dladdr(address, &info) ? info.dli_fbase : nullptr; // null: on the heap
  };
  const void *llvmLibrary = libraryOf(&llvm::cl::getGeneralCategory());
  std::set<std::string> names;
  for (auto &entry : llvm::cl::getRegisteredOptions())
    if (const llvm::cl::Option *option = entry.second; option->getNumOccurrences() > 0)
      if (const void *library = libraryOf(option); library && library == llvmLibrary)
        names.insert("--" + entry.first.str());
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text;
}

} // namespace hpc::kernels
