// External data are laid out anew, in the order of the model, so that many old files become one.
#include "passes/Driver/TrainedOnnx.h"

#include <filesystem>

namespace hpc {

namespace {

/// Large tensors begin at a page, so that whoever maps the file can use them in place.
int64_t alignedOffset(int64_t offset, int64_t bytes) {
  const int64_t alignment = bytes >= (1 << 20) ? 4096 : 64;
  return (offset + alignment - 1) / alignment * alignment;
}

/// A tensor of the new file of external data.
struct DataTensor {
  const ModelTensor *tensor;
  int64_t offset;
};

class TrainedOnnxWriter {
public:
  TrainedOnnxWriter(const TrainedModel &model, std::string destination, bool followLinks)
      : model(model), destination(std::move(destination)), followLinks(followLinks) {}

  Status write() {
    HPC_RETURN_IF_ERROR(layOut());
    HPC_RETURN_IF_ERROR(checkDestinations());
    Expected<AtomicFile> file = AtomicFile::create(destination);
    HPC_RETURN_IF_ERROR(file.status());
    std::optional<Expected<AtomicFile>> dataFile;
    if (hasData) {
      dataFile.emplace(AtomicFile::create(dataPath()));
      HPC_RETURN_IF_ERROR(dataFile->status());
      HPC_RETURN_IF_ERROR(writeData(**dataFile));
    }
    std::vector<onnx::TensorPlace> places;
    for (const ModelTensor &tensor : model.tensors())
      places.push_back(tensor.place);
    HPC_RETURN_IF_ERROR(onnx::rewriteTensors(model.file(), places, elements, std::filesystem::path(dataPath()).filename().string(), *file));
    if (hasData)
      HPC_RETURN_IF_ERROR((*dataFile)->commit());
    return file->commit();
  }

private:
  std::string dataPath() const { return destination + ".data"; }

  static onnx::ElementSource sourceOf(const ModelTensor &tensor) {
    return [&tensor](const onnx::WriteBytes &write) { return writeElements(*tensor.trained, *tensor.place.dtype, write); };
  }

  /// Tensors that share their bytes go on sharing them.
  Status layOut() {
    std::map<std::tuple<std::string, int64_t, int64_t>, DataTensor> known;
    int64_t end = 0;
    for (const ModelTensor &tensor : model.tensors()) {
      onnx::NewElements next;
      const onnx::TensorPlace &place = tensor.place;
      if (place.isExternal) {
        hasData = true;
        const int64_t start = alignedOffset(end, place.bytes);
        auto [entry, isNew] = known.try_emplace(std::tuple(place.location, place.offset, place.bytes), DataTensor{&tensor, start});
        const std::optional<TrainedTensor> &first = entry->second.tensor->trained;
        const bool isSame = first && tensor.trained ? first->tensor == tensor.trained->tensor || isSameTensor(*first->tensor, *tensor.trained->tensor)
                                                    : !first && !tensor.trained;
        if (!isNew && !isSame)
          return Status::error(ErrorKind::Usage, "tensors '" + entry->second.tensor->name() + "' and '" + tensor.name() +
                                                     "' are the same bytes of '" + place.location + "' and different trained tensors; save the model again");
        next.offset = entry->second.offset;
        if (isNew) {
          data.push_back(entry->second);
          end = start + place.bytes;
        }
      } else if (tensor.trained) {
        next.source = sourceOf(tensor);
      }
      elements.push_back(std::move(next));
    }
    return Status::success();
  }

  Status checkDestinations() const {
    std::error_code error;
    for (const std::string &path : {destination, hasData ? dataPath() : std::string()}) {
      std::vector<std::string> read = {model.file().path()};
      for (const ModelTensor &tensor : model.tensors())
        if (tensor.place.isExternal)
          read.push_back(resolvePath(folderOf(model.file().path()), tensor.place.location));
      for (const std::string &other : read)
        if (!path.empty() && std::filesystem::equivalent(withoutLinks(path), withoutLinks(other), error))
          return Status::error(ErrorKind::Usage, "'" + path + "' would replace '" + other + "', a file of the untrained model; give it another name");
    }
    return Status::success();
  }

  Status writeData(AtomicFile &file) {
    std::map<std::string, MappedFile> old; // by location
    int64_t at = 0;
    for (const DataTensor &entry : data) {
      const ModelTensor &tensor = *entry.tensor;
      const onnx::TensorPlace &place = tensor.place;
      HPC_RETURN_IF_ERROR(file.write(std::string(size_t(entry.offset - at), '\0')));
      at = entry.offset + place.bytes;
      if (tensor.trained) {
        HPC_RETURN_IF_ERROR(sourceOf(tensor)([&](const std::byte *bytes, int64_t count) { return file.write(bytes, count); }));
        continue;
      }
      auto found = old.find(place.location);
      if (found == old.end()) {
        Expected<MappedFile> opened = MappedFile::openBeneath(folderOf(model.file().path()), place.location, followLinks);
        if (!opened.ok())
          return opened.status().at("tensor '" + tensor.name() + "' keeps its value");
        found = old.emplace(place.location, std::move(*opened)).first;
      }
      Expected<const std::byte *> bytes = found->second.range(place.offset, place.bytes, "tensor '" + tensor.name() + "'");
      HPC_RETURN_IF_ERROR(bytes.status());
      HPC_RETURN_IF_ERROR(file.write(*bytes, place.bytes));
      dropMappedPages(*bytes, place.bytes);
    }
    return Status::success();
  }

  const TrainedModel &model;
  const std::string destination;
  const bool followLinks;
  bool hasData = false;
  std::vector<onnx::NewElements> elements; ///< by tensor of the model
  std::vector<DataTensor> data;
};

} // namespace

Expected<std::vector<std::string>> writeTrainedOnnx(const std::string &model, const TrainedWeights &weights, const std::string &destination) {
  Expected<TrainedModel> trained = TrainedModel::open(model, weights);
  HPC_RETURN_IF_ERROR(trained.status());
  HPC_RETURN_IF_ERROR(TrainedOnnxWriter(*trained, destination, weights.followLinks).write());
  return trained->notes;
}

} // namespace hpc
