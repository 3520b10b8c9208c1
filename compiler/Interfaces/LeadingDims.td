// LeadingDimsOpInterface: an op whose first dim can become several. An op with an attribute about dims that does not
// say how it changes is left as it is.
#ifndef HPC_INTERFACES_LEADINGDIMS
#define HPC_INTERFACES_LEADINGDIMS
include "mlir/IR/OpBase.td"
include "mlir/IR/Interfaces.td"

def LeadingDimsOpInterface : OpInterface<"LeadingDimsOpInterface"> {
  let cppNamespace = "::hpc";
  let description = [{
    [B*S, C] and [B, S, C] are the same to an op that treats every row alike. `nn.transpose {permutation = [0, 2, 1]}` on [B*S, H, D] is
    `{permutation = [0, 1, 3, 2]}` on [B, S, H, D]; `nn.cumsum {axis = 1}` becomes `{axis = 2}`, and `{axis = 0}` runs across rows: it has no such form.
    That the first dim is one factor of the op, and which operands have it, is said by its sharding rule; attributes are all that is asked here.
  }];
  let methods = [
    InterfaceMethod<[{
        The op's attributes when dim 0 of its result, and of every operand that shares it, has become 1 + `more` dims; nothing where an
        attribute speaks of dim 0 itself. The default is for ops whose attributes say nothing about dims.
      }],
      "::std::optional<::mlir::NamedAttrList>", "attributesForMoreDims", (ins "int64_t":$more), /*methodBody=*/"", /*defaultImplementation=*/[{
        return ::mlir::NamedAttrList($_op->getAttrDictionary());
      }]>,
  ];
}
#endif
