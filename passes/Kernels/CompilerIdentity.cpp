// Reads the ELF notes of what is loaded, as the dynamic linker lists it.
#include "passes/Kernels/CompilerIdentity.h"

#include "runtime/base/File.h"
#include "runtime/base/Hash.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"

#include <cstring>
#include <link.h>

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

/// A name is no identity; the bytes are.
static std::string fileHash(const char *name) {
  Expected<MappedFile> file = MappedFile::open(*name ? name : "/proc/self/exe");
  return file.ok() ? "hash " + std::to_string(hashBytes(file->data(), file->size())) : std::string("unknown ") + name;
}

static int addObject(dl_phdr_info *object, size_t, void *text) {
  std::string id = buildId(*object);
  *static_cast<std::string *>(text) += (id.empty() ? fileHash(object->dlpi_name) : id) + "\n";
  return 0;
}

const std::string &compilerIdentity() {
  static const std::string identity = [] {
    std::string text = "LLVM " LLVM_VERSION_STRING "\n";
    dl_iterate_phdr(addObject, &text);
    return text;
  }();
  return identity;
}

} // namespace hpc::kernels
