// Attributes to structs and back. The text is parsed again by whoever asks: it is small, and there is nothing to keep in
// step.
#include "compiler/Sidecar/ModuleSidecar.h"

namespace hpc {

void setSidecar(ModuleOp module, StringRef file, StringRef text) {
  Builder builder(module.getContext());
  module->setAttr(sidecarAttrName,
                  builder.getDictionaryAttr({builder.getNamedAttr("file", builder.getStringAttr(file)),
                                             builder.getNamedAttr("text", builder.getStringAttr(text))}));
}

void copySidecar(ModuleOp from, ModuleOp to) {
  for (const char *name : {sidecarAttrName, sidecarTensorsAttrName})
    if (Attribute attribute = from->getAttr(name))
      to->setAttr(name, attribute);
}

Expected<std::optional<Sidecar>> sidecarOf(ModuleOp module) {
  Attribute attribute = module->getAttr(sidecarAttrName);
  if (!attribute)
    return std::optional<Sidecar>();
  auto dictionary = dyn_cast<DictionaryAttr>(attribute);
  auto file = dictionary ? dictionary.getAs<StringAttr>("file") : StringAttr();
  auto text = dictionary ? dictionary.getAs<StringAttr>("text") : StringAttr();
  if (!file || !text)
    return Status::error(ErrorKind::Model, std::string(sidecarAttrName) +
                                               " is not of the form {file = \"...\", text = \"...\"}; leave the "
                                               "attribute as hpc-opt --dump-phases wrote it");
  Expected<Sidecar> sidecar = parseSidecar(text.getValue(), file.str());
  if (!sidecar.ok())
    return sidecar.status();
  return std::optional<Sidecar>(std::move(*sidecar));
}

void setSidecarPlaces(ModuleOp module, const SidecarPlaces &places) {
  Builder builder(module.getContext());
  NamedAttrList entries;
  for (const auto &[subject, place] : places)
    if (!subject.empty())
      entries.set(subject, builder.getStringAttr(place));
  module->setAttr(sidecarPlacesAttrName, entries.getDictionary(module.getContext()));
}

SidecarPlaces sidecarPlaces(ModuleOp module) {
  SidecarPlaces places;
  if (auto entries = module->getAttrOfType<DictionaryAttr>(sidecarPlacesAttrName))
    for (NamedAttribute entry : entries)
      if (auto place = dyn_cast<StringAttr>(entry.getValue()))
        places[entry.getName().str()] = place.str();
  return places;
}

} // namespace hpc
