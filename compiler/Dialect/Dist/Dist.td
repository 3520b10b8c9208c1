// The `dist` dialect: who holds what. Mesh and sharding attributes; reshard before partition, collectives after it.
#ifndef HPC_DIST
#define HPC_DIST
include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "compiler/Interfaces/Collective.td"
include "compiler/Interfaces/DiscardableAttributes.td"
include "compiler/Interfaces/ReduceKind.td"
include "compiler/Interfaces/Structure.td"

def Dist_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::hpc::dist";
  let summary = "Meshes, shardings and the collectives between them";
  let description = [{
    A module has one mesh (attribute `dist.mesh`). After `propagate` the encoding of every ranked tensor type is a sharding. Before `partition` a type's shape is
    global; after it, the local box of its sharding. Collectives move boxes; a gathered dim is compact again.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
}

class Dist_Attr<string name, string mnem> : AttrDef<Dist_Dialect, name> {
  let mnemonic = mnem;
  let hasCustomAssemblyFormat = 1;
}
def Dist_MeshAttr : Dist_Attr<"Mesh", "mesh"> {
  let summary = "named axes and their roles: `#dist.mesh<\"mb=2:time, dp=1:data, tp=2:tensor\">`";
  let parameters = (ins AttrParameter<"::hpc::dist::Mesh", "the axes">:$value);
}
def Dist_ShardingAttr : Dist_Attr<"Sharding", "sharding"> {
  let summary = "who holds which elements: `#dist.sharding<\"[4@mb, 33, (3, 5@tp, 8)] partial{tp}\">`";
  let parameters = (ins AttrParameter<"::hpc::dist::Sharding", "the algebra's form">:$value);
}

def Dist_SeedAttr : Dist_Attr<"Seed", "seed"> {
  let summary = "what somebody wants of a value: `#dist.seed<\"[4@dp, 33?]\", priority = 0, origin = \"sidecar\">`";
  let description = [{
    The attribute `dist.seed` of ops and arguments until propagate. `33?` may be cut by others, other dims may not. Lower priorities flow first; 1 and
    "layout" are the defaults and not printed. `#dist.sharding<...>` in its place is the seed of a default layout: its uncut dims are open.
  }];
  let parameters = (ins AttrParameter<"::hpc::dist::Seed", "sharding, open dims, priority, origin">:$value);
}

class Dist_Op<string mnemonic, list<Trait> traits = [Pure]> : Op<Dist_Dialect, mnemonic, !listconcat([HPC_NamesItsAttributes], traits)>;

def Dist_ReshardOp : Dist_Op<"reshard"> {
  let summary = "the same global tensor under another sharding; partition turns it into collectives";
  let description = [{
        %1 = dist.reshard %0 {cause = "..."} : tensor<2x40xf32, #dist.sharding<"[2, 40] partial{tp}">> -> tensor<2x40xf32, #dist.sharding<"[2, 40]">>

    Constraints: (C1) global shapes and element types agree. (C2) the result is partial only where the operand is.
  }];
  let arguments = (ins AnyRankedTensor:$operand, OptionalAttr<StrAttr>:$cause, OptionalAttr<StrAttr>:$avoid);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

def Dist_ReduceKindAttr : HPC_ReduceKindAttr<Dist_Dialect>;

/// A step of a reshard (compiler/Dialect/Dist/Sharding.h, ReshardStep) on local boxes. `before` and `after` are the step's shardings with
/// split sub-dims (the types' encodings are their normal forms); dims and sub-dims are those of ReshardStep. `kind`, `group`, `reduction` and `dims` are what
/// C++ answers with: a case of ReshardStep::Kind, axes, a reduction, and the dims and sub-dims in the order of ReshardStep.
class Dist_Step<string mnemonic, string kind, string group, string reduction, string dims, dag extra, list<Trait> traits = []>
    : Dist_Op<mnemonic, !listconcat([Pure, CollectiveOpInterface], traits)> {
  let arguments = !con((ins AnyRankedTensor:$operand, Dist_ShardingAttr:$before, Dist_ShardingAttr:$after,
      OptionalAttr<StrAttr>:$cause, OptionalAttr<StrAttr>:$avoid), extra);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let extraClassDeclaration = [{
    ::hpc::dist::ReshardStep::Kind getCollectiveKind() { return ::hpc::dist::ReshardStep::}] # kind # [{; }
    ::std::vector<::std::string> getGroup() { return ::hpc::dist::axesOf(}] # group # [{); }
    ::std::optional<::hpc::ReduceKind> getReduction() { return }] # reduction # [{; }
    ::std::optional<::hpc::dist::ReshardStep> getStep() {
      return ::hpc::dist::ReshardStep{getCollectiveKind(), getGroup(), }] # dims # [{, getBefore().getValue(), getAfter().getValue()};
    }
  }];
  let hasVerifier = 1;
}

def Dist_AllReduceOp : Dist_Step<"all_reduce", "AllReduce", "getAxes()", "getKind()", "-1, -1, -1, -1",
    (ins StrArrayAttr:$axes, Dist_ReduceKindAttr:$kind)> {
  let summary = "combines the boxes of the ranks along `axes`; everyone gets the result";
  let description = "With a kind other than sum, `before` and `after` are equal (only sums are ever partial).";
}
def Dist_AccumulateOp : Dist_Step<"accumulate", "Accumulate", "getAxes()", "::hpc::ReduceKind::Sum", "-1, -1, -1, -1",
    (ins StrArrayAttr:$axes)> {
  let summary = "the sum over all micro-batches: one value a step";
  let description = [{
        %1 = dist.accumulate %0 {axes = ["mb"], before = #dist.sharding<"[6, 8] partial{mb}">, after = #dist.sharding<"[6, 8]">} : ... -> ...

    The only way across an axis of time. Nothing moves: the term of every micro-batch is added where it is. Constraints: (C1) as every step. (C2) every axis
    has the role `time`, and the operand is partial over it.
  }];
}
def Dist_AllGatherOp : Dist_Step<"all_gather", "AllGather", "getAxisAttr()", "::std::nullopt", "int(getFromDim()), -1, int(getFromSub()), -1",
    (ins StrAttr:$axis, I64Attr:$from_dim, I64Attr:$from_sub)> {
  let summary = "`axis` no longer cuts sub-dim `from_sub` of dim `from_dim`; the gathered sub-dim is compact";
}
def Dist_ReduceScatterOp : Dist_Step<"reduce_scatter", "ReduceScatter", "getAxisAttr()", "::hpc::ReduceKind::Sum", "-1, int(getToDim()), -1, int(getToSub())",
    (ins StrAttr:$axis, I64Attr:$to_dim, I64Attr:$to_sub)> {
  let summary = "sums over `axis`, of which each rank keeps its part of sub-dim `to_sub` of dim `to_dim`";
}
def Dist_AllToAllOp : Dist_Step<"all_to_all", "AllToAll", "getAxisAttr()", "::std::nullopt", "int(getFromDim()), int(getToDim()), int(getFromSub()), int(getToSub())",
    (ins StrAttr:$axis, I64Attr:$from_dim, I64Attr:$from_sub, I64Attr:$to_dim, I64Attr:$to_sub)> {
  let summary = "`axis` moves from cutting one sub-dim to cutting another";
}
def Dist_PermuteOp : Dist_Step<"permute", "Permute", "getAxes()", "::std::nullopt", "-1, -1, -1, -1",
    (ins StrArrayAttr:$axes)> {
  let summary = "whole boxes change places: axes trade what they cut";
}
def Dist_SliceOp : Dist_Step<"slice", "Slice", "getAxisAttr()", "::std::nullopt", "-1, int(getToDim()), -1, int(getToSub())",
    (ins StrAttr:$axis, I64Attr:$to_dim, I64Attr:$to_sub), [StructureOpInterface, HPC_Structure<"Move", "None">]> {
  let summary = "each rank keeps its part of sub-dim `to_sub` of dim `to_dim`; no communication";
}

/// The plan's collectives as they stand: contiguous blocks, no shardings. `hpc-pack-collectives` makes them, with nn views round them.
class Dist_Raw<string mnemonic, string kind, string reduction = "::std::nullopt", dag extra = (ins), code more = ""> : Dist_Op<mnemonic, [Pure, CollectiveOpInterface]> {
  let arguments = !con((ins AnyRankedTensor:$operand, StrAttr:$axis, OptionalAttr<StrAttr>:$cause, OptionalAttr<StrAttr>:$avoid), extra);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let extraClassDeclaration = [{
    ::hpc::dist::ReshardStep::Kind getCollectiveKind() { return ::hpc::dist::ReshardStep::}] # kind # [{; }
    ::std::vector<::std::string> getGroup() { return ::hpc::dist::axesOf(getAxisAttr()); }
    ::std::optional<::hpc::ReduceKind> getReduction() { return }] # reduction # [{; }
    ::std::optional<::hpc::dist::ReshardStep> getStep() { return ::std::nullopt; }
  }] # more;
  let hasVerifier = 1;
}
def Dist_RawAllGatherOp : Dist_Raw<"raw_all_gather", "AllGather"> {
  let summary = "the operands of all ranks along `axis`, in coordinate order: [k] + operand shape";
  let description = "result[c, ...] = operand of coordinate c. Constraints: (C1) the result's shape is [k] + the operand's, k the size of `axis`.";
}
def Dist_RawReduceScatterOp : Dist_Raw<"raw_reduce_scatter", "ReduceScatter", "::hpc::ReduceKind::Sum"> {
  let summary = "the sum over `axis` of the ranks' block at this rank's coordinate: [k] + shape -> shape";
  let description = "result[...] = sum over ranks r of operand_r[my coordinate, ...]. Constraints: (C1) the operand's shape is [k] + the result's.";
}
def Dist_RawAllToAllOp : Dist_Raw<"raw_all_to_all", "AllToAll"> {
  let summary = "block j of the result is the block at this rank's coordinate of rank j's operand: [k, ...] -> [k, ...]";
  let description = "result[j, ...] = operand_j[my coordinate, ...]. Constraints: (C1) operand and result have one shape, whose first dim is k.";
}
def Dist_RawPermuteOp : Dist_Raw<"raw_permute", "Permute", "::std::nullopt", (ins I64Attr:$shift, OptionalAttr<StrAttr>:$skew, UnitAttr:$against), [{
    /// The coordinate along the axis of the rank from which the rank at `coordinate` takes.
    int64_t sourceOf(const ::hpc::dist::Mesh &mesh, const ::std::vector<int64_t> &coordinate);
  }]> {
  let summary = "the operand of another rank along `axis`: `shift` further, in a ring";
  let description = [{
    result = operand of coordinate (mine + shift + my coordinate along `skew`) modulo k, the size of `axis`. Without `skew` all ranks take from as far. With
    `against` the coordinate along `skew` is subtracted.

        %1 = dist.raw_permute %0 {axis = "cp", shift = 1 : i64} : tensor<4x252xf32> -> tensor<4x252xf32>

    Constraints: (C1) operand and result have one shape and element type. (C2) `skew` is another axis of the mesh.
  }];
}

def Dist_RawBlockOp : Dist_Op<"raw_block"> {
  let summary = "the part of dim `dim` that another rank's coordinate of `cut` names";
  let description = [{
    `cut` is the sharding of one dim, whose first sub-dim one axis cuts. The coordinate is (mine + shift + my coordinate along `skew`) modulo k. The result has the
    box of the cut; past the extent of that coordinate it is zero. An operand no larger than the box is that part already, and only its extent is stated.
    In kernels it is an alias that matmuls alone read: an offset and an exact extent.

        %1 = dist.raw_block %0 {dim = 0 : i64, cut = #dist.sharding<"[7@tp.y]">, shift = 1 : i64} : tensor<7x16xf32> -> tensor<3x16xf32>

    Constraints: (C1) `dim` is a dim of the operand. (C2) the result's shape is the operand's with the box of `cut` at `dim`. (C3) the operand has all of
    the dim or the box. (C4) one axis cuts the first sub-dim of `cut`, and none the others; `skew` is another axis of the mesh.
  }];
  let arguments = (ins AnyRankedTensor:$operand, I64Attr:$dim, Dist_ShardingAttr:$cut, I64Attr:$shift, OptionalAttr<StrAttr>:$skew);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let extraClassDeclaration = [{
    /// First index and number of the elements of the dim that the rank at `coordinate` sees; the index is 0 where the operand is the part already.
    ::hpc::dist::Range rangeAt(const ::hpc::dist::Mesh &mesh, const ::std::vector<int64_t> &coordinate);
  }];
  let hasVerifier = 1;
}

def Dist_FillTailOp : Dist_Op<"fill_tail", [Pure, StructureOpInterface, HPC_Structure<"Elementwise", "Cheap">]> {
  let summary = "overwrites the padding of the listed dims by `value`";
  let description = [{
    Padding is what the operand's sharding says no rank holds at this coordinate. Reductions over a cut uneven factor read it.

        %1 = dist.fill_tail %0 {dims = array<i64: 2>, value = 0.0 : f32} : tensor<2x33x24xf32, #s> -> tensor<2x33x24xf32, #s>

    Constraints: (C1) `value` is a number of the element type. (C2) `dims` are dims of the operand. (C3) operand and result have one type.
  }];
  let arguments = (ins AnyRankedTensor:$operand, DenseI64ArrayAttr:$dims, TypedAttrInterface:$value);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

def Dist_OffsetOp : Dist_Op<"offset", [Pure, StructureOpInterface, HPC_Structure<"Source", "None">]> {
  let summary = "the first index of `dim` that this coordinate holds, a tensor<i64>";
  let description = [{
    `dim` is the sharding of one dim with a single cut sub-dim: `#dist.sharding<"[503@tp]">`. A rank that holds nothing gets the clamped start.
    With `shift` it is what the coordinate holds that is so much further along the last axis that cuts the sub-dim, in a ring.

        %o = dist.offset {dim = #dist.sharding<"[503@tp]">} : tensor<i64>
  }];
  let arguments = (ins Dist_ShardingAttr:$dim, DefaultValuedAttr<I64Attr, "0">:$shift);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::hpc::dist::ShardingAttr":$dim), [{
    build($_builder, $_state, result, dim, 0); }]>];
  let extraClassDeclaration = [{
    /// The coordinate whose start it is, for the rank at `coordinate`.
    ::std::vector<int64_t> placeOf(const ::hpc::dist::Mesh &mesh, const ::std::vector<int64_t> &coordinate);
  }];
}
#endif
