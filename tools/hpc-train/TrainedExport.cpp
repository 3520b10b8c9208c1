// The driver does it; this file is the only one of hpc-train that sees it.
#include "tools/hpc-train/TrainedExport.h"

#include "passes/Driver/TrainedFolder.h"
#include "passes/Driver/TrainedOnnx.h"
#include "tools/ExitCode.h"

namespace hpc {

static TrainedWeights weightsOf(const TrainedExport &from) { return {from.checkpoint, "the checkpoint '" + from.checkpoint + "'", from.followLinks}; }

static Status tellNotes(const Expected<std::vector<std::string>> &notes) {
  HPC_RETURN_IF_ERROR(notes.status());
  for (const std::string &note : *notes)
    printNote(note);
  return Status::success();
}

Status exportTrainedOnnx(const TrainedExport &from, const std::string &to) { return tellNotes(writeTrainedOnnx(from.model, weightsOf(from), to)); }

Status exportTrainedFolder(const TrainedExport &from, const std::string &to) {
  return tellNotes(writeTrainedFolder(from.model, weightsOf(from), {from.pretrained, from.tokenizer, from.shardBytes}, to));
}

} // namespace hpc
