// The passes of phase partition, in the order in which they run.
#ifndef HPC_PASSES_PARTITION
#define HPC_PASSES_PARTITION
include "mlir/Pass/PassBase.td"

class PartitionPass<string flag> : Pass<flag, "::mlir::ModuleOp"> {
  let dependentDialects = ["::hpc::dist::DistDialect", "::hpc::nn::NNDialect"];
}

def DecomposeSharded : PartitionPass<"hpc-decompose-sharded"> {
  let summary = "Composites that reduce over a cut factor become their definition";
  let description = [{
    A softmax over `[2, 503@tp]` becomes reduce max, sub, exp, reduce sum, div; every new op has its sharding. Composites whose internal factor is whole stay.
    A sum over ranks that is there already, of the same values, is not summed again: a norm's gradient reads the statistics of its definition.
  }];
}
def CollectPartials : PartitionPass<"hpc-collect-partials"> {
  let summary = "Sums of many values add those that are partial over the same axes first";
  let description = [{
    `(p1 + x) + p2` becomes `(p1 + p2) + x`: one all-reduce instead of two, or one reduce-scatter where the sum is cut over these axes. And `p * f` of a number `f` loses its partial axes where all its readers need the whole
    sum: `all_reduce(p) * f`, which fusion computes where it is read, instead of a pass over the data before the all-reduce.
  }];
}
def InsertReshards : PartitionPass<"hpc-insert-reshards"> {
  let summary = "Every operand gets the sharding that its op needs, by dist.reshard";
  let description = [{
    One reshard for each value and wanted sharding, before its first user; each says what caused it and what would avoid it.

        %y = nn.matmul ... : tensor<2x40xf32, #dist.sharding<"[2, 40] partial{tp}">>
        %r = dist.reshard %y {cause = "nn.matmul (c_proj) sums over a dim cut over tp by the layout's cut of c_proj.weight"} : ... -> tensor<2x40xf32, #dist.sharding<"[2, 40]">>
        %z = nn.add %r, %bias

    With `zero` of 2 or 3 a gradient that data parallelism cuts is scattered in each micro-batch, so that its running sum is a piece:

        %1 = dist.reshard %g : "[8, 6] partial{dp, mb}" -> "[8@dp, 6] partial{mb}"
        %2 = dist.reshard %1 : "[8@dp, 6] partial{mb}" -> "[8@dp, 6]"
  }];
  let options = [Option<"zero", "zero", "int64_t", "0", "level of hpc-annotate-zero">];
}
def NarrowReshards : PartitionPass<"hpc-narrow-reshards"> {
  let summary = "What is read in 16 bits moves in 16 bits, and so do sums of 16-bit products over tensor axes";
  let description = [{
    A cast to 16 bits that alone reads a gathered, exchanged or permuted value goes before the collective, which changes no number. Terms of a sum over tensor
    axes that products of a bf16 weight make (mayRoundTerms) are rounded by the ranks that hold them. What is only sliced is rounded behind.

        %w = nn.parameter "fc" : tensor<8x8xf32, #dist.sharding<"[8@dp, 8]">>
        %r = dist.reshard %w : ... -> tensor<8x8xf32, #dist.sharding<"[8, 8]">>
        %n = nn.cast %r : tensor<8x8xf32> -> tensor<8x8xbf16>
        %y = nn.matmul %x, %n : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xf32, #dist.sharding<"[4, 8] partial{tp}">>
        %s = dist.reshard %y : ... -> tensor<4x8xf32, #dist.sharding<"[4, 8]">>
        // becomes
        %c = nn.cast %w : tensor<8x8xf32, #dist.sharding<"[8@dp, 8]">> -> tensor<8x8xbf16, #dist.sharding<"[8@dp, 8]">>
        %n = dist.reshard %c : ... -> tensor<8x8xbf16, #dist.sharding<"[8, 8]">>
        %y = nn.matmul %x, %n : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xf32, #dist.sharding<"[4, 8] partial{tp}">>
        %t = nn.cast %y {nn.rounds_terms} : ... -> tensor<4x8xbf16, #dist.sharding<"[4, 8] partial{tp}">>
        %r = dist.reshard %t : ... -> tensor<4x8xbf16, #dist.sharding<"[4, 8]">>
        %s = nn.cast %r : tensor<4x8xbf16> -> tensor<4x8xf32>
  }];
}
def FillTails : PartitionPass<"hpc-fill-tails"> {
  let summary = "Identities into the padding that a reduction over a cut uneven factor would read";
  let description = "Parameters and inputs are zero in their padding already, so a sum needs no `dist.fill_tail` for them.";
}
def Localize : PartitionPass<"hpc-localize"> {
  let summary = "From global shapes to the local box of one rank";
  let description = [{
    dist.reshard becomes the steps of its plan; types become boxes and keep their sharding as encoding; ops that read global coordinates get a `dist.offset`;
    max, min and prod over a cut factor get their all-reduce. The function's arguments and results are local too.

        %r = dist.reshard %y : tensor<2x40xf32, #dist.sharding<"[2, 40] partial{tp}">> -> ...
        // becomes
        %r = dist.all_reduce %y {after = #dist.sharding<"[2, 40]">, axes = ["tp"], before = #dist.sharding<"[2, 40] partial{tp}">, kind = ...}
  }];
}
def VerifyPartitioned : PartitionPass<"hpc-verify-partitioned"> {
  let summary = "Local shapes only, and every op derived again from its rule";
  let description = [{
    Changes nothing. From the encodings of its operands and results every op's factors are read again: they must agree, reductions over cut factors must give partial
    sums or be followed by their all-reduce, padding that is reduced must be filled, offsets and local attributes must be those that localize() gives.
    Every collective must do what its shardings say.
  }];
}
def RingAttention : PartitionPass<"hpc-ring-attention"> {
  let summary = "Attention takes keys that are gathered over a sequence axis block by block from its neighbour";
  let description = [{
    Runs on local boxes. Keys and values go round the ring of the axis, one block at a time, and the parts of the result are joined by their log_sum; the
    gradients of a block's keys travel with it. The bytes are those of the gathers and reduce-scatters in its place, the memory two blocks of keys.

        %k = dist.all_gather %0 {axis = "cp", from_dim = 2, ...} : tensor<2x4x8x8xf32, #dist.sharding<"[2, 4, 16@cp, 8]">> -> tensor<2x4x16x8xf32>
        %v = dist.all_gather %1 {axis = "cp", from_dim = 2, ...} : ...
        %r = nn.attention %q, %k, %v ... : ...
        // becomes
        %2 = dist.raw_permute %0 {axis = "cp", shift = 1 : i64} : tensor<2x4x8x8xf32, ...> -> tensor<2x4x8x8xf32, #dist.sharding<"[2, 4, 8, 8]">>
        %3 = dist.raw_permute %1 {axis = "cp", shift = 1 : i64} : ...
        %4, %5 = nn.attention %q, %0, %1 ... : ... -> tensor<2x4x8x8xf32>, tensor<2x4x8x1xf32>
        %6 = dist.offset {dim = #dist.sharding<"[16@cp]">, shift = 1 : i64} : tensor<i64>
        %r = nn.attention %q, %2, %3 key_start %6 carried %4, %5 : ...
  }];
}
def VerifyRings : PartitionPass<"hpc-verify-rings"> {
  let summary = "Every ring reads each block of keys once, at its positions, and brings its gradients home";
  let description = [{
    Changes nothing. It follows keys and values back through `dist.raw_permute`, and gradients of keys forward, and counts their hops.
  }];
}
#endif
