// A module's sidecar: the text of the file travels in the module attribute `hpc.sidecar = {file, text}`, so that a dumped
// phase goes on without the file. `hpc.sidecar_places` remembers which line decided about what.
#pragma once

#include "compiler/MLIR.h"
#include "compiler/ModuleAttributes.h"
#include "compiler/Sidecar/Sidecar.h"

namespace hpc {

void setSidecar(ModuleOp module, StringRef file, StringRef text);
/// All that a program has of its sidecar before annotate.
void copySidecar(ModuleOp from, ModuleOp to);
/// nullopt where the module has none. Errors: as parseSidecar's; an attribute that is damaged (model).
Expected<std::optional<Sidecar>> sidecarOf(ModuleOp module);

/// By subject (compiler/Subject.h): the place of the rule that decided about it, "gpt2.shard.json:7".
using SidecarPlaces = std::map<std::string, std::string>;
void setSidecarPlaces(ModuleOp module, const SidecarPlaces &places);
SidecarPlaces sidecarPlaces(ModuleOp module);

} // namespace hpc
