// The ONNX values that an op's result is, kept in its location behind node and module path:
// NameLoc(node, NameLoc(path, NameLoc(value, NameLoc(another name of it)))). They survive where the op is replaced by one
// at its location, which is how raise replaces ops.
#pragma once

#include "compiler/Location.h"

namespace hpc {

/// Empty where it is none, or nobody knows.
inline std::vector<std::string> valueNames(Location location) {
  std::vector<std::string> names;
  NameLoc node = findNameLoc(location);
  NameLoc path = node ? findNameLoc(node.getChildLoc()) : NameLoc();
  for (NameLoc name = path ? findNameLoc(path.getChildLoc()) : NameLoc(); name; name = findNameLoc(name.getChildLoc()))
    names.push_back(name.getName().str());
  return names;
}

/// The location with one more name of the value; of a location without a node it stays what it is.
inline Location withValueName(Location location, StringRef value) {
  NameLoc node = findNameLoc(location);
  if (!node)
    return location;
  MLIRContext *context = location.getContext();
  std::vector<std::string> names = valueNames(location);
  names.push_back(value.str());
  Location chain = UnknownLoc::get(context);
  for (const std::string &name : llvm::reverse(names))
    chain = NameLoc::get(StringAttr::get(context, name), chain);
  return NameLoc::get(node.getName(), NameLoc::get(StringAttr::get(context, modulePath(location)), chain));
}

} // namespace hpc
