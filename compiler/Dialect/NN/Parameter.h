// Parameters: how one is stored, by which names others speak of it, and those that a step does not read. nn.parameter (Source.td) says what each field and
// attribute means.
#pragma once

#include "compiler/Dialect/NN/NN.h"
#include "runtime/plan/Plan.h"

namespace hpc::nn {

/// `#nn.storage` as data.
struct Storage {
  std::string file;
  int64_t offset = 0, bytes = 0;
  std::vector<int64_t> hashes;
  Type type;                          ///< null: the parameter's own
  std::vector<int64_t> shape, starts; ///< empty: the parameter is all that is stored
  std::optional<int64_t> int8Along, int8Size;
};

/// The form of a parameter with int8_along: the numbers as floats, the whole numbers alone, or the scales of their lines.
using plan::Int8Form;
Int8Form int8FormOf(ParameterOp parameter);

/// The shape of all that is stored, whatever part of it a parameter is and in whatever form.
SmallVector<int64_t> storedShapeOf(ParameterOp parameter);

/// A list of names, as an attribute and back; empty for null.
ArrayAttr namesAttr(MLIRContext *context, ArrayRef<std::string> names);
std::vector<std::string> namesIn(std::optional<ArrayAttr> names);

/// All names by which somebody may speak of a parameter: its own, then its aliases.
std::vector<std::string> namesOf(ParameterOp parameter);
bool isTransposedAlias(ParameterOp parameter, StringRef name);

/// Marks the parameter that a value is, perhaps after casts.
void markStatistic(Value value);

/// On a module: parameters of the model that a training step does not read, an array of {attributes, type}. Who saves a model saves
/// them, too.
constexpr const char *unreadAttrName = "nn.unread_parameters";

void noteUnread(ModuleOp module, ArrayRef<std::pair<DictionaryAttr, Type>> parameters);
/// Calls `visit` with an op of each, which belongs to no block and goes after the call.
void eachUnread(ModuleOp module, llvm::function_ref<void(ParameterOp)> visit);
/// Each is a parameter.
LogicalResult verifyUnread(ModuleOp module);

} // namespace hpc::nn
