// The dialect and the base classes of its ops.
#ifndef HPC_NN_BASE
#define HPC_NN_BASE
include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Bytecode/BytecodeOpInterface.td"
include "compiler/Interfaces/ShardingRule.td"
include "compiler/Interfaces/Cost.td"
include "compiler/Interfaces/DiscardableAttributes.td"
include "compiler/Interfaces/Structure.td"
include "compiler/Interfaces/LeadingDims.td"
include "compiler/Interfaces/MixedPrecision.td"
include "compiler/Interfaces/Differentiable.td"

def NN_Dialect : Dialect {
  let name = "nn";
  let cppNamespace = "::hpc::nn";
  let summary = "Serial tensor maths, as ONNX models use it";
  let description = [{
    Ranked tensors of static shape. Elementwise ops broadcast as NumPy does. Before `partition` shapes are global; after it they are the padded
    local box of one rank, and the sharding in the type's encoding says which part. Every op that computes has a sharding rule.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
}

class NN_Op<string mnemonic, list<Trait> traits = []> : Op<NN_Dialect, mnemonic, !listconcat([HPC_NamesItsAttributes], traits)>;

/// An op that computes: no side effects, a sharding rule, a cost. `access` and `effort` are cases of the enums in
/// compiler/Interfaces/Structure.h. One whose first dim may become several says so by LeadingDimsOpInterface, declaring
/// its method where attributes speak of dims.
class NN_ComputeOp<string mnemonic, string access, string effort, list<Trait> traits = []>
    : NN_Op<mnemonic, !listconcat([Pure, StructureOpInterface, HPC_Structure<access, effort>,
        DeclareOpInterfaceMethods<ShardingRuleOpInterface>, DeclareOpInterfaceMethods<CostOpInterface>], traits)>;

/// Has a rule for gradients, in <Family>Gradients.cpp.
def NN_Differentiable : DeclareOpInterfaceMethods<DifferentiableOpInterface>;

/// Its attributes speak of dims, and it says how they change with more leading dims.
def NN_CountsDims : DeclareOpInterfaceMethods<LeadingDimsOpInterface, ["attributesForMoreDims"]>;
#endif
