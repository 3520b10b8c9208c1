// Labels of a loss: a new input of @main, and what stands for it where the data has none.
#pragma once

#include "compiler/Dialect/NN/Ports.h"

namespace hpc::train {

/// The input that rows of a table of `vocabulary` rows are looked up with: an integer argument of the shape `shape` that
/// reaches the indices of a look-up. "" where there is none, or several and none of them reaches a table of that size.
std::string findIds(func::FuncOp function, ArrayRef<int64_t> shape, int64_t vocabulary);

/// Whether the model looks rows up in a table of so many: what an output [batch, sequence, vocabulary] has in common with it.
bool hasTableOf(func::FuncOp function, int64_t rows);

/// What the labels' dims are called: as those of `like`; without it, the first dim is the inputs' batch where one of them
/// has its size.
std::vector<std::string> dimsOfLabels(func::FuncOp function, ArrayRef<int64_t> shape, const std::string &like);

} // namespace hpc::train
