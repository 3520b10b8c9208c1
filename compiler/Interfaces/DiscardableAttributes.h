// The discardable attributes of a dialect, in one table: which it has, where they may stand, and of which form. Passes take one that they cannot read for
// absent, so the dialect's verifier refuses it.
#pragma once

#include "compiler/MLIR.h"

namespace hpc {

/// The places where a discardable attribute may stand; their bits are combined.
enum AttributePlace : unsigned { onModule = 1, onFunction = 2, onOp = 4, onArgument = 8, onResult = 16 };

/// A form of attributes: a test, and its name for messages.
struct AttributeForm {
  bool (*holds)(Attribute attribute);
  const char *text;
};
namespace forms {
extern const AttributeForm any; ///< its reader reports the rest
extern const AttributeForm flag, text, number, real, numbers, fields, list, texts, textFields, bytes, location, locations;
} // namespace forms

struct DiscardableAttribute {
  const char *name;
  unsigned places;
  const AttributeForm &form;
};

/// Errors at `op`: an attribute that the table of its dialect lacks, or of another form or in another place than passes write it.
LogicalResult verifyDiscardable(Operation *op, NamedAttribute attribute, unsigned place, ArrayRef<DiscardableAttribute> table);
/// The place of an attribute of `op` itself.
unsigned attributePlaceOf(Operation *op);

/// Op trait: each attribute is the op's own or has the prefix of a dialect, whose verifier sees it. Any other is a misspelt name.
template <typename Op> struct NamesItsAttributes : OpTrait::TraitBase<Op, NamesItsAttributes> {
  static LogicalResult verifyTrait(Operation *op);
};
/// The check of the trait.
LogicalResult verifyAttributeNames(Operation *op);
template <typename Op> LogicalResult NamesItsAttributes<Op>::verifyTrait(Operation *op) { return verifyAttributeNames(op); }

} // namespace hpc
