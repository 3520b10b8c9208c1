// --write-onnx-annotations: what was chosen, as the standard's own device configurations inside a copy of the model.
#pragma once

#include "compiler/Import/AnnotationRules.h"
#include "compiler/MLIR.h"
#include "passes/Options.h"

namespace hpc {

/// Parameters with seeds and tensors with rules, of a program after phase annotate.
onnx::ChosenLayout chosenLayout(ModuleOp annotated, const Options &options);

/// The stage of every node that is in one stage alone, of a program after phase stage.
void addStages(ModuleOp staged, onnx::ChosenLayout &layout);

/// Errors: usage (a program that is no .onnx file, chunks, another folder than that of external data), io, model.
Status writeAnnotatedModel(const std::string &model, const std::string &output, const Options &options,
                           ModuleOp compiled, const onnx::ChosenLayout &layout);

} // namespace hpc
