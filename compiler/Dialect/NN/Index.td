// Ops that make or read indices.
#ifndef HPC_NN_INDEX
#define HPC_NN_INDEX
include "compiler/Dialect/NN/Base.td"

def NN_IotaOp : NN_ComputeOp<"iota", "Source", "None", [
    DeclareOpInterfaceMethods<ShardingRuleOpInterface, ["getShardingRule", "localize"]>]> {
  let summary = "start + step * (index along `dim` + offset)";
  let description = [{
    The same along all other dims. `offset` (a tensor<i64>) appears when partition cuts `dim`.

        %i = nn.iota {dim = 0 : i64, start = 0 : i64, step = 1 : i64} : tensor<16x1xi64>
  }];
  let arguments = (ins Optional<AnyRankedTensor>:$offset, I64Attr:$dim, DefaultValuedAttr<I64Attr, "0">:$start,
      DefaultValuedAttr<I64Attr, "1">:$step);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "(`offset` $offset^ `:` type($offset))? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def NN_EmbeddingOp : NN_ComputeOp<"embedding", "Lookup", "Cheap", [LeadingDimsOpInterface, NN_Differentiable,
    DeclareOpInterfaceMethods<ShardingRuleOpInterface, ["getShardingRule", "localize"]>]> {
  let summary = "rows of a table: result[..., e] = table[ids[...], e]";
  let description = [{
    Rule `ve,...->...e; sum v; lookup v`. A negative id counts from `vocabulary`, the *global* number of rows. With `offset` (a tensor<i64>) the table
    holds rows offset, offset+1, ... and a row held elsewhere yields 0; an id outside [-vocabulary, vocabulary) yields NaN.
    Constraints: (C1) table is [v, e]; ids are integers; result is ids' shape and e.
  }];
  let arguments = (ins AnyRankedTensor:$table, AnyRankedTensor:$ids, Optional<AnyRankedTensor>:$offset, I64Attr:$vocabulary);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$table `,` $ids (`offset` $offset^ `:` type($offset))? attr-dict `:` type($table) `,` type($ids) `->` type($result)";
  let hasVerifier = 1;
}

def NN_EmbeddingGradOp : NN_ComputeOp<"embedding_grad", "Lookup", "Expensive", [NN_Differentiable,
    DeclareOpInterfaceMethods<ShardingRuleOpInterface, ["getShardingRule", "localize"]>,
    DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>]> {
  let summary = "the gradient of an embedding's table: result[v, e] = sum of rows[..., e] where ids[...] is v";
  let description = [{
    Rule `...e,...->ve; sum ...; index v`, linear in the rows. Ids count from the end where they are negative, as in nn.embedding; one outside
    [-vocabulary, vocabulary) is added nowhere. With `offset` (a tensor<i64>) the result is rows offset, offset+1, ... of the table. Terms are added in the order
    of the ids, so a sum does not depend on who computes it.

        %d = nn.embedding_grad %rows, %ids {vocabulary = 503 : i64} : tensor<4x33x40xf32>, tensor<4x33xi64> -> tensor<503x40xf32>

    Constraints: (C1) rows are ids' shape and e; ids are integers; the result is [v, e].
  }];
  let arguments = (ins AnyRankedTensor:$rows, AnyRankedTensor:$ids, Optional<AnyRankedTensor>:$offset, I64Attr:$vocabulary);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$rows `,` $ids (`offset` $offset^ `:` type($offset))? attr-dict `:` type($rows) `,` type($ids) `->` type($result)";
  let hasVerifier = 1;
}

def NN_GatherOp : NN_ComputeOp<"gather", "Lookup", "Cheap", [NN_CountsDims, NN_Differentiable]> {
  let summary = "ONNX Gather: result = data with dim `axis` replaced by the indices' dims";
  let description = "The gathered axis is never cut. Constraints: (C1) the result's shape is data[:axis] + indices + data[axis+1:].";
  let arguments = (ins AnyRankedTensor:$data, AnyRankedTensor:$indices, I64Attr:$axis);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$data `,` $indices attr-dict `:` type($data) `,` type($indices) `->` type($result)";
  let hasVerifier = 1;
}

def NN_GatherNdOp : NN_ComputeOp<"gather_nd", "Lookup", "Cheap", [NN_CountsDims, NN_Differentiable]> {
  let summary = "ONNX GatherND: indices[..., :] name positions of data's dims after `batch_dims`";
  let description = "The dims that the indices name positions of are never cut, nor is the indices' last dim.";
  let arguments = (ins AnyRankedTensor:$data, AnyRankedTensor:$indices, I64Attr:$batch_dims);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$data `,` $indices attr-dict `:` type($data) `,` type($indices) `->` type($result)";
  let hasVerifier = 1;
}

def NN_UpdateSliceOp : NN_ComputeOp<"update_slice", "Lookup", "Expensive", [NN_CountsDims, DeclareOpInterfaceMethods<CompositeOpInterface>]> {
  let summary = "state with `rows` in place of its elements position, position + 1, ... along `dim`";
  let description = [{
    Decoding writes its rows to a cache so: result[.., position + i, ..] = rows[.., i, ..], and every other element is that of the state. `position` has to be in [0, L - C], where the state has L
    elements along `dim` and the rows C; or with `wraps` it is any position from 0 on, and row i is at (position + i) mod L: the state is a ring. `dim` is never cut. The state is an argument of @main with `nn.state`, which the result writes and nothing else reads: both are one buffer, of
    which a step touches the rows alone. Of any other tensor the op computes a new one, by its definition.

        %1 = nn.update_slice %cache, %keys, %position {dim = 2 : i64} : tensor<8x12x1024x64xf32>, tensor<8x12x1x64xf32>, tensor<i64> -> tensor<8x12x1024x64xf32>

    Constraints: (C1) rows have the state's element type and its sizes, along `dim` at most its size. (C2) position is a tensor<i64>; a constant is in range. (C3) the result has the
    state's type.
  }];
  let arguments = (ins AnyRankedTensor:$state, AnyRankedTensor:$rows, AnyRankedTensor:$position, I64Attr:$dim, UnitAttr:$wraps);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$state `,` $rows `,` $position attr-dict `:` type($state) `,` type($rows) `,` type($position) `->` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Value":$state, "::mlir::Value":$rows, "::mlir::Value":$position, "int64_t":$dim), [{
    build($_builder, $_state, state.getType(), state, rows, position, dim); }]>];
  let hasVerifier = 1;
}

def NN_CumsumOp : NN_ComputeOp<"cumsum", "Combine", "Expensive", [NN_CountsDims, NN_Differentiable]> {
  let summary = "running sum along `axis`, which is never cut";
  let arguments = (ins AnyRankedTensor:$operand, I64Attr:$axis, UnitAttr:$exclusive, UnitAttr:$reverse);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Value":$operand, "int64_t":$axis), [{ build($_builder, $_state, operand.getType(), operand, axis); }]>];
}
#endif
