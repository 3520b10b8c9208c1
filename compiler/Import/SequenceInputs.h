// Inputs that a sequence from its first position decides, where the graph becomes a step of generation: no caller gives them.
#pragma once

#include "compiler/Import/OnnxModel.h"

namespace hpc::onnx {

/// The sizes that follow from `rows` sequences (0: what `dims` or the model has, else 1) of `length` positions: of the ids, of masks and positions beside them (`attention_mask`, `position_ids`,
/// `token_type_ids`), and of a past (`past...`), which has none. They are added to `dims`. Errors (usage): other sizes in the model or in `dims`.
Status bindSequenceSizes(const Model &model, int64_t rows, int64_t length, std::map<std::string, int64_t> &dims);

/// The content of these inputs but the ids: masks of ones, positions 0, 1, ..., types 0, a past without elements. `shapes` are those of model.inputs.
std::vector<StoredTensor> sequenceInputs(const Model &model, const std::vector<std::vector<int64_t>> &shapes);

} // namespace hpc::onnx
