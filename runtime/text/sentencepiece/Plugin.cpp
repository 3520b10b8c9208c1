// The only file that sees the library.
#include "runtime/text/sentencepiece/Model.h"

#include <sentencepiece_processor.h>

#include <memory>

namespace hpc::text {
namespace {

class LibraryModel : public SentencePieceModel {
public:
  static std::string textOf(const sentencepiece::util::Status &status) { return status.ok() ? "" : status.ToString(); }

  std::string open(std::string_view content) { return textOf(processor.LoadFromSerializedProto(content)); }

  std::string encode(std::string_view text, std::vector<int32_t> &ids) const override {
    std::vector<int> found;
    const sentencepiece::util::Status status = processor.Encode(text, &found);
    ids.insert(ids.end(), found.begin(), found.end());
    return textOf(status);
  }
  std::string decode(const std::vector<int32_t> &ids, std::string &text) const override { return textOf(processor.Decode(ids, &text)); }

  int32_t size() const override { return processor.GetPieceSize(); }
  std::string pieceOf(int32_t id) const override { return processor.IdToPiece(id); }
  int32_t idOf(const std::string &piece) const override {
    const int32_t id = processor.PieceToId(piece); // that of <unk> where there is none
    return id >= 0 && id < size() && processor.IdToPiece(id) == piece ? id : -1;
  }
  bool isControl(int32_t id) const override { return processor.IsControl(id); }
  int32_t end() const override { return processor.eos_id(); }
  int32_t pad() const override { return processor.pad_id(); }

private:
  sentencepiece::SentencePieceProcessor processor;
};

} // namespace

extern "C" SentencePieceModel *hpcOpenSentencePiece(std::string_view content, std::string &error) {
  auto model = std::make_unique<LibraryModel>();
  error = model->open(content);
  return error.empty() ? model.release() : nullptr;
}

} // namespace hpc::text
