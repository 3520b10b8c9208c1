// The checks go from the surest to the loosest. Tokens of 16 bits are arbitrary bytes, so no check rests on two bytes alone.
#include "runtime/base/FileKind.h"

#include "runtime/base/WireFormat.h"
#include "runtime/base/Zip.h"

#include <algorithm>
#include <cstring>

namespace hpc {

namespace {

bool beginsWith(std::string_view content, std::string_view magic) { return content.substr(0, magic.size()) == magic; }

bool endsWith(std::string_view text, std::string_view ending) {
  return text.size() >= ending.size() && text.substr(text.size() - ending.size()) == ending;
}

/// The first sign at or after `at` that is no space of JSON; 0 at the end.
char signAfter(std::string_view content, size_t at) {
  size_t found = content.find_first_not_of(" \t\r\n", at);
  return found == content.npos ? char(0) : content[found];
}

/// Eight bytes of length, then a JSON object. The reader checks whether the length fits.
bool isSafeTensors(std::string_view content) {
  if (content.size() < 10 || content[8] != '{')
    return false;
  const char next = signAfter(content.substr(0, 4096), 9);
  return next == '"' || next == '}';
}

/// A ModelProto: known fields of the right types to the end, a graph among them.
bool isOnnx(std::string_view content) {
  constexpr uint64_t irVersion = 1, modelVersion = 5, graph = 7, most = 100;
  wire::Fields fields(reinterpret_cast<const std::byte *>(content.data()), 0, int64_t(content.size()));
  bool hasGraph = false;
  for (wire::Field field; fields.next(field);) {
    const bool isNumber = field.number == irVersion || field.number == modelVersion;
    if (field.number == 0 || field.number > most || (field.number <= 8 && field.type != (isNumber ? 0 : 2)))
      return false;
    hasGraph = hasGraph || field.number == graph;
  }
  return hasGraph && fields.atEnd();
}

FileKind archiveKind(std::string_view content) {
  Expected<ZipReader> zip = ZipReader::open(content, "");
  if (!zip.ok())
    return FileKind::Zip;
  bool hasArray = zip->members().empty(); // numpy.savez without arrays
  for (const ZipMember &member : zip->members()) {
    if (member.name == "data.pkl" || endsWith(member.name, "/data.pkl"))
      return FileKind::TorchArchive;
    hasArray = hasArray || endsWith(member.name, ".npy");
  }
  return hasArray ? FileKind::Npz : FileKind::Zip;
}

bool isPickle(std::string_view content) {
  constexpr std::string_view oldTorch("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 14);
  constexpr std::string_view firstCodes("\x95\x8a}])(cKX\x8c", 10);
  if (beginsWith(content, oldTorch))
    return true;
  return content.size() > 4 && content[0] == '\x80' && content[1] >= 2 && content[1] <= 5 &&
         firstCodes.find(content[2]) != firstCodes.npos && content.back() == '.';
}

bool isExecutable(std::string_view content) {
  for (std::string_view magic : {"\x7f" "ELF", "\xcf\xfa\xed\xfe", "\xfe\xed\xfa\xcf", "\xca\xfe\xba\xbe", "!<arch>\n"})
    if (beginsWith(content, magic))
      return true;
  if (!beginsWith(content, "MZ") || content.size() < 64)
    return false;
  uint32_t header;
  std::memcpy(&header, content.data() + 60, sizeof(header));
  return header < content.size() && beginsWith(content.substr(header), std::string_view("PE\0\0", 4));
}

bool isText(std::string_view content) {
  const std::string_view head = content.substr(0, 4096);
  return std::all_of(head.begin(), head.end(), [](char sign) {
    const unsigned char byte = static_cast<unsigned char>(sign);
    return byte >= 0x20 ? byte != 0x7f : sign == '\n' || sign == '\t' || sign == '\r' || sign == '\f';
  });
}

} // namespace

FileKind fileKindOf(std::string_view content) {
  if (content.empty())
    return FileKind::Empty;
  if (beginsWith(content, "\x0a\x08hpc-plan"))
    return FileKind::Plan;
  if (beginsWith(content, "\x93NUMPY"))
    return FileKind::Npy;
  if (beginsWith(content, "PK\x03\x04") || beginsWith(content, "PK\x05\x06"))
    return archiveKind(content);
  if (beginsWith(content, "\x89HDF\r\n\x1a\n"))
    return FileKind::Hdf5;
  if (isExecutable(content))
    return FileKind::Executable;
  if (isPickle(content))
    return FileKind::Pickle;
  if (isSafeTensors(content))
    return FileKind::SafeTensors;
  if (isOnnx(content))
    return FileKind::Onnx;
  if (!isText(content))
    return beginsWith(content, "GGUF") ? FileKind::Gguf : FileKind::Unknown;
  if (beginsWith(content, "version https://git-lfs.github.com/spec/"))
    return FileKind::LfsPointer;
  const char first = signAfter(content, 0);
  if (first != '{' && first != '[')
    return FileKind::Text;
  constexpr size_t head = 1 << 20; // "metadata" may stand before it
  return content.substr(0, head).find("\"weight_map\"") != content.npos ? FileKind::SafeTensorsIndex : FileKind::Json;
}

const char *describe(FileKind kind) {
  switch (kind) {
  case FileKind::Unknown:
    return "a file of no known kind, or one that is cut off";
  case FileKind::Empty:
    return "empty";
  case FileKind::SafeTensors:
    return "a safetensors file";
  case FileKind::SafeTensorsIndex:
    return "the index of sharded safetensors files";
  case FileKind::Onnx:
    return "an ONNX model";
  case FileKind::Plan:
    return "a plan of hpc-opt";
  case FileKind::Npz:
    return "an archive of NumPy arrays (.npz)";
  case FileKind::Npy:
    return "a NumPy array (.npy)";
  case FileKind::TorchArchive:
    return "a file of torch.save (a zip archive with a pickle)";
  case FileKind::Pickle:
    return "a Python pickle, as torch.save writes";
  case FileKind::Zip:
    return "a zip archive without arrays, or a damaged one";
  case FileKind::Gguf:
    return "a GGUF file";
  case FileKind::Hdf5:
    return "an HDF5 file, as Keras writes";
  case FileKind::LfsPointer:
    return "a pointer of Git LFS, not the file itself";
  case FileKind::Executable:
    return "an executable or a library";
  case FileKind::Json:
    return "a JSON text";
  case FileKind::Text:
    return "a text";
  }
  return "?";
}

std::string useOf(FileKind kind) {
  switch (kind) {
  case FileKind::SafeTensors:
  case FileKind::SafeTensorsIndex:
    return "it holds weights, which hpc-run PLAN --weights=FILE takes";
  case FileKind::Onnx:
    return "hpc-opt MODEL -o FILE.plan compiles it";
  case FileKind::Plan:
    return "hpc-run runs it, hpc-plan prints it";
  case FileKind::Npz:
  case FileKind::Npy:
    return "it holds arrays, which hpc-run PLAN takes by --input or --data";
  case FileKind::TorchArchive:
  case FileKind::Pickle:
    return "a pickle can run any code when it is read, so it is not read here; save the weights once more by "
           "safetensors.torch.save_file(torch.load(FILE, weights_only=True), 'model.safetensors'), or the model by "
           "save_pretrained(FOLDER)";
  case FileKind::LfsPointer:
    return "fetch the file by git lfs pull";
  default:
    return "";
  }
}

std::string whatItIs(FileKind kind) {
  if (kind == FileKind::Unknown)
    return "";
  const std::string use = useOf(kind);
  return std::string(": it is ") + describe(kind) + (use.empty() ? "" : "; " + use);
}

} // namespace hpc
