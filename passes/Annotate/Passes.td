// The passes of phase annotate, in the order in which they run.
#ifndef HPC_PASSES_ANNOTATE
#define HPC_PASSES_ANNOTATE
include "mlir/Pass/PassBase.td"

def BuildMesh : Pass<"hpc-build-mesh", "::mlir::ModuleOp"> {
  let summary = "give the module its mesh: all axes that cut tensors (compiler/Dialect/Dist/MeshDegrees.h), of size 1 where no degree is given";
  let options = [ListOption<"degrees", "degrees", "std::string", "as tp=2, one an axis">,
                 Option<"layout", "layout", "std::string", "\"1d\"", "how the ranks of tp are arranged, as 2d:2x3">];
  let dependentDialects = ["::hpc::dist::DistDialect"];
}

def NoteLookups : Pass<"hpc-note-lookups", "::mlir::ModuleOp"> {
  let summary = "note on integer inputs which numbers the lookups by them take";
  let description = [{
    ids name rows of a table, labels classes; a number that names none gives NaN, somewhere in the result. ONNX calls it an error, and so does who runs the plan,
    beforehand, by what is noted here. While the program is serial, since a rank sees a part of an input alone.

    After: `%ids: tensor<2x8xi64> {nn.lookups = [{begin = array<i64: 0, 0>, end = array<i64: 2, 8>, low = -257 : i64, high = 257 : i64, reader = "transformer.wte"} ]}`.
  }];
}

def AnnotateSidecar : Pass<"hpc-annotate-sidecar", "::mlir::ModuleOp"> {
  let summary = "turn the rules of the user's sidecar into seeds";
  let description = [{
    The sidecar stands in the module attribute `hpc.sidecar` (compiler/Sidecar), or in the file that the option names. A parameter takes the first rule that matches
    one of its names. What a rule cuts is cut, what it leaves is whole: the seed is closed, goes before all others, and is binding. A rule with `inferred` is the
    seed of a default layout instead; that of a vector (bias, norm) flows after those of matrices, which it followed when it was written. `output_replicate` marks the parameter's product (behind its bias) as `dist.whole_output`; a tensor with `[]` is marked so too.
    Tensors are named as in the model; of what a rule leaves uncut of them, each dim is open.
    A rule that decides nothing is an error that names the nearest name.

    Before: `{"match": "*.c_fc.weight", "shard": [{"dim": -1, "axis": "tp"} ]}`. After, on the parameter:
    `dist.seed = #dist.seed<"[40, 160@tp]", priority = 0, origin = "sidecar">`; the module says which line decided it.
  }];
  let options = [Option<"spec", "spec", "std::string", "\"\"", "path of a sidecar; empty: the module's own">];
  let dependentDialects = ["::hpc::dist::DistDialect"];
}

def AnnotateBatch : Pass<"hpc-annotate-batch", "::mlir::ModuleOp"> {
  let summary = "seed the batch dim of the inputs: cut over micro-batches, and each of those over dp";
  let description = [{
    The batch dim is the one named by the option, else the one whose name starts with `batch`, else dim 0.
    Axes of time stand outside of axes of data, and both outside of what the user seeds on the input. An axis of a layout's own (`tp.x`) cuts the batch while every rank still
    gets a sequence; those left cut the positions of attention in all activations, which then gathers keys and values over them.
    Where the user cuts the batch of a computed value (any dim whose major factor comes from an input's batch dim), time stands outside of that too. Step scalars have no batch, and of states only
    the caches of a generation step, which hold a row for each of its rows.
    After: the argument attribute `dist.seed = #dist.seed<"[4@(mb, dp), 33?]">`.
  }];
  let options = [Option<"batchDim", "batch-dim", "std::string", "\"\"", "name of the batch dim">];
  let dependentDialects = ["::hpc::dist::DistDialect"];
}

def AnnotateTensorParallel : Pass<"hpc-annotate-tensor-parallel", "::mlir::ModuleOp"> {
  let summary = "seed values with a layout over the tensor axes, found from the graph's structure";
  let description = [{
    Layouts are strategies (LayoutStrategy.h), chosen by name. The user's own seeds stay.

    `1d`, Megatron's: a matmul whose contracted dim comes from columns of earlier weight matmuls alone (through elementwise ops, views, attention) is cut by rows, those
    by columns, along a part of the dim that survives the way (heads, for attention): the one that leaves the busiest rank the least work, the outermost of
    equals (groups of heads; the heads of each group where there are too few). Matrices stacked in one weight whose results are summed
    (experts that a router mixes) are dealt out whole, if there is one for every rank. What no rank can compute a part of (a softmax's row) is whole
    on all, and may be sliced on the way, unless it comes from the very columns. Where several layouts are possible (channels that many convolutions read), the
    cheapest in all-reduces is taken that leaves no more than a tenth of the work whole; a product whose result is added to a sum anyway is cut by rows, and what it reads stays whole. Embedding tables are cut by vocabulary where a rank
    saves at least the bytes that the all-reduce then moves in a micro-batch, or where the table is a head's weight too; a matmul that leads to nothing but outputs is cut by columns. Shoeybi et al. 2019, section 3.

    `1d+sp` (`--sp`): the weights of `1d`; what follows from a sum over tp is cut along the sequence up to the next product by columns, so that the sum is a
    reduce-scatter and a gather stands before the product. Korthikanti et al. 2022.

    `2d`: ranks x by y. Rows are cut over x, as a batch is over dp, and weights are stored in pieces over x and gathered for use; the columns of every product, and so the
    hidden dim between products, are cut over y. A product that sums over a weight's columns, for the gradient of its operand or for a head of an embedding's table, leaves y to these, and its
    readers get parts by a reduce-scatter. One that makes a weight's gradient cuts the weight's columns. Vectors are stored in pieces where a collective costs less than they have bytes. Xu et al. 2021.

    `2.5d`: the same on each of z ranks, which cut rows further and hold equal weights. Wang et al. 2021.

    `3d`: ranks x by y by z. Rows are cut over x and one of y and z, the hidden dim over the other one; each product with a weight exchanges the two. Weights are stored in
    pieces over x. Rows of a batch go first, then positions of the sequence. Bian et al. 2021.
  }];
  let options = [Option<"layout", "layout", "std::string", "\"1d\"", "name of the strategy, with sizes or not">,
                 Option<"batchDim", "batch-dim", "std::string", "\"\"", "name of the batch dim">];
  let dependentDialects = ["::hpc::dist::DistDialect"];
}

def AnnotateSequence : Pass<"hpc-annotate-sequence", "::mlir::ModuleOp"> {
  let summary = "cut the positions of all activations over the axes of context parallelism";
  let description = [{
    A value has positions if some attention reads them, through any ops that take each position by itself (SequenceDims.h). Inputs and activations with such a dim get
    a seed of it, outside of what a layout cuts it over. All ops but attention are then local; attention's rule needs keys and values whole, so they are gathered, and their gradients
    are sums over the axes that become pieces again. Before: `%ids: tensor<4x32xi64> {dist.seed = #dist.seed<"[4@dp, 32?]">}`. After: `"[4@dp, 32@cp]"`.
    With the mode `ulysses` attention itself has heads over these axes, inside of what cuts heads already, and all positions: queries, keys, values and the result
    change places by all-to-alls. Groups of heads are dealt out, or the heads of each group where there are fewer groups than ranks. Jacobs et al. 2023 (arXiv 2309.14509).
    With the balance `zigzag`, and causal attention, rows are first put in an order in which a rank's have as many keys to see as any other's: part r of 2c and part 2c-1-r.
    Ids and the like are gathered in that order, and attention gets the position of each query. Keys, values and outputs are gathered back.
  }];
  let options = [Option<"mode", "mode", "std::string", "\"gather\"", "gather, ring (the same seeds) or ulysses">,
                 Option<"balance", "balance", "std::string", "\"plain\"", "zigzag: ranks get equal work of causal attention; or plain">];
  let dependentDialects = ["::hpc::dist::DistDialect"];
}

def AnnotateSteps : Pass<"hpc-annotate-steps", "::mlir::ModuleOp"> {
  let summary = "cut the positions of all activations over virtual ranks, of which each is a step of generation";
  let description = [{
    The mesh has an axis `cp` of length / rows steps, and an axis `row` of the rows of one. Positions are cut as hpc-annotate-sequence cuts them, in plain order. A value from which no attention
    has its keys or values keeps one row: it is cut over `row` as well, up to the outputs. passes/Generate turns what a rank computes into what a step computes.

    Before: `%ids: tensor<4x32xi64>`. After, with length=32 rows=8: `dist.seed = #dist.seed<"[4?, 32@cp]">`, and `"[4?, 32@(cp, row), 50?]"` of the logits.
  }];
  let options = [Option<"length", "length", "int64_t", "0", "positions of a sequence at most">,
                 Option<"rows", "rows", "int64_t", "1", "positions of a step">];
  let dependentDialects = ["::hpc::dist::DistDialect"];
}

def AnnotateZero : Pass<"hpc-annotate-zero", "::mlir::ModuleOp"> {
  let summary = "cut the states of the optimizer, and for level 3 stored parameters, over data parallelism";
  let description = [{
    A state has the seed of its parameter, and is cut besides over the axes of data along the first dim that no seed cuts and that has an element for every rank (uneven is exact).
    Levels 1 and 2: the parameter is stored whole over data, so the update slices what it reads and gathers what it writes, and its gradient becomes a reduce-scatter.
    Level 3: the parameter is stored cut as its states are, and gathered before each use. Level 2 differs from 1 in micro-batches alone: a gradient is scattered in
    each of them (hpc-insert-reshards), so what is added up is a piece. Vectors stay whole where tensor axes cut weights too, and
    anywhere if they have less than 64 KiB, which their collectives would cost: their gradients are all-reduced in buckets. Rajbhandari et al. 2020.

    Before: `%m` (`nn.state = "adam.m/w"`) of the parameter `w` with the seed `[5, 7@tp]`. After: `dist.seed = #dist.seed<"[5@dp, 7@tp]">` on `%m`, `"[5, 7@tp]"` with a closed first dim on `w`.
  }];
  let options = [Option<"level", "level", "int64_t", "0", "0 (nothing), 1, 2 or 3">];
  let dependentDialects = ["::hpc::dist::DistDialect"];
}

def VerifyAnnotated : Pass<"hpc-verify-annotated", "::mlir::ModuleOp"> {
  let summary = "check: one mesh, seeds fit their tensors, no type carries a sharding yet";
}
#endif
