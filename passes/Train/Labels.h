// Labels of a loss: a new input of @main, and the input that replaces it where the data has none.
#pragma once

#include "compiler/Dialect/NN/Ports.h"

namespace hpc::train {

/// The input with the row numbers of a table of `vocabulary` rows: an integer argument of the shape `shape` that
/// reaches the indices of a lookup. "" where there is none, or several and not just one of them reaches such a table.
std::string findIds(func::FuncOp function, ArrayRef<int64_t> shape, int64_t vocabulary);

/// Whether the model looks up rows of such a table, as one with outputs [batch, sequence, vocabulary] does.
bool hasTableOf(func::FuncOp function, int64_t rows);

/// The names of the labels' dims: those of `like`; without it, the first dim is the inputs' batch where one of them has
/// its size.
std::vector<std::string> dimsOfLabels(func::FuncOp function, ArrayRef<int64_t> shape, const std::string &like);

} // namespace hpc::train
