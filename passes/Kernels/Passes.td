// The passes of phase kernels, in the order in which they run.
#ifndef HPC_PASSES_KERNELS
#define HPC_PASSES_KERNELS
include "mlir/Pass/PassBase.td"

def BindCasts : Pass<"hpc-bind-casts", "::mlir::ModuleOp"> {
  let summary = "a weight that is read in 16 bits becomes a parameter that is rounded when it is bound";
  let description = [{
    From f32 to f16 or bf16. What reads the weight as it is stored keeps it, beside the rounded one. A weight that the program writes stays as it is.

        %w = nn.parameter "w" stored <bytes = 6144> : tensor<32x48xf32>
        %n = nn.cast %w : tensor<32x48xf32> -> tensor<32x48xbf16>

        %n = nn.parameter "w" stored <bytes = 6144, type = f32> : tensor<32x48xbf16>
  }];
  let dependentDialects = ["::hpc::nn::NNDialect", "::hpc::dist::DistDialect"];
}

def BindParts : Pass<"hpc-bind-parts", "::mlir::ModuleOp"> {
  let summary = "a slice of a weight becomes a parameter that is bound to this part of what is stored";
  let description = [{
    A rank then reads its part of the file once, where it would hold the whole weight and copy the part in every step. dist.slice, by which a rank takes its cut of the
    part, is part of the binding too, where the cut nests with what is stored. Weights that the program writes stay as they are, and so do those of which something is
    read otherwise or not at all.

        %w = nn.parameter "qkv" {...} : tensor<32x48xf32>
        %s = nn.slice %w {starts = array<i64: 0, 0>, ...} : tensor<32x48xf32> -> tensor<32x32xf32, "[32, 32]">
        %q = dist.slice %s {after = "[32, 32@tp]", ...} -> tensor<32x16xf32, "[32, 32@tp]">

        %q = nn.parameter "qkv" stored <shape = [32, 48], starts = [0, 0]> : tensor<32x16xf32, "[32, 32@tp]">
  }];
  let dependentDialects = ["::hpc::nn::NNDialect", "::hpc::dist::DistDialect"];
}

def PanelProducts : Pass<"hpc-panel-products", "::mlir::ModuleOp"> {
  let summary = "products take gathered operands panel by panel (--panels)";
  let description = [{
    SUMMA's form of a product whose operands are gathered: q products, whose panels arrive by exchanges while the one before is computed. A rank then holds two panels
    of an operand instead of q. Where two operands are gathered over two axes of one size along what is summed, Cannon's skew makes their panels meet: at step t the rank
    (x, y) has panel (x + y + t) mod q of both. Otherwise the larger operand is taken in panels, and a product reads its part of the other where it lies (dist.raw_block).

        %x = dist.all_gather %a {axis = "y", from_dim = 1, ...} : tensor<4x3xf32, "[8@x, 9@y]"> -> tensor<4x9xf32, "[8@x, 9]">
        %w = dist.all_gather %b {axis = "x", from_dim = 0, ...} : tensor<3x6xf32, "[9@x, 18@y]"> -> tensor<9x6xf32, "[9, 18@y]">
        %c = nn.matmul %x, %w : tensor<4x9xf32>, tensor<9x6xf32> -> tensor<4x6xf32>

        %x0 = dist.raw_permute %a {axis = "y", shift = 0, skew = "x"} : tensor<4x3xf32> -> tensor<4x3xf32>
        %w0 = dist.raw_permute %b {axis = "x", shift = 0, skew = "y"} : tensor<3x6xf32> -> tensor<3x6xf32>
        %x1 = dist.raw_permute %a {axis = "y", shift = 1, skew = "x"} ...
        %w1 = ...
        %c0 = nn.matmul %x0, %w0 : tensor<4x3xf32>, tensor<3x6xf32> -> tensor<4x6xf32>
        %x2 = ...
        %p1 = nn.matmul %x1, %w1 : ...
        %c1 = nn.add %c0, %p1 {hpc.adds_in_product} : ...    // one call of the library: c0 += x1 * w1

    Backward mirrors it. The result of a product is scattered along a dim that an operand is gathered along: the product makes a panel of the result, sends it to its
    owner while the next is made, and adds up what arrives. Products that share a gathered operand, or a scattered sum, are taken together where the program allows.
    A gather that something else reads too stays.
  }];
  let dependentDialects = ["::hpc::nn::NNDialect", "::hpc::dist::DistDialect"];
}

def PackCollectives : Pass<"hpc-pack-collectives", "::mlir::ModuleOp"> {
  let summary = "collectives on boxes become the plan's collectives on contiguous blocks";
  let description = [{
    An all-gather of the last sub-dim gives one box per rank, major to everything; a transpose, a reshape and a slice make the gathered sub-dim compact:

        %1 = dist.all_gather %0 {axis = "tp", ...} : tensor<4x252xf32> -> tensor<4x503xf32>

        %a = dist.raw_all_gather %0 {axis = "tp"} : tensor<4x252xf32> -> tensor<2x4x252xf32>
        %b = nn.transpose %a {permutation = array<i64: 1, 0, 2>} : tensor<2x4x252xf32> -> tensor<4x2x252xf32>
        %c = nn.reshape %b : tensor<4x2x252xf32> -> tensor<4x504xf32>
        %1 = nn.slice %c {starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : tensor<4x504xf32> -> tensor<4x503xf32>

    Reduce-scatter and all-to-all pad, reshape and transpose before them in the same way. All-reduce and permute act on whole boxes already.
  }];
  let dependentDialects = ["::hpc::nn::NNDialect", "::hpc::dist::DistDialect"];
}

def DecomposeComposites : Pass<"hpc-decompose-composites", "::mlir::ModuleOp"> {
  let summary = "composites that nobody claims become their definitions";
  let description = [{
    A composite that a library or generated code claims on the module's `hpc.target` (compiler/Providers.h; "x86-64" where it names none) stays:

        %1 = nn.attention %q, %k, %v {scale = 0.5 : f64} : ...   // of 600 channels, more than its generated code takes

        %a = nn.matmul %q, %k {transpose_rhs} : ...
        %b = nn.mul %a, %half : ...
        %c = nn.softmax %b : ...                                 // claimed by generated code
        %1 = nn.matmul %c, %v : ...

    The ops made carry `hpc.kernel_name = "attention"`, by which hpc-fuse-regions names the region that a reduction of them ends in.
  }];
  let dependentDialects = ["::hpc::nn::NNDialect"];
}

def FoldTransposes : Pass<"hpc-fold-transposes", "::mlir::ModuleOp"> {
  let summary = "products read transposed operands and gathered blocks, and write blocks to scatter, without a copy";
  let description = [{
        %t = nn.transpose %k {permutation = array<i64: 0, 1, 3, 2>} : tensor<2x3x33x8xf32> -> tensor<2x3x8x33xf32>
        %s = nn.matmul %q, %t : ...

        %s = nn.matmul %q, %k {transpose_rhs} : ...

    A transpose that also permutes leading dims is split, so that what remains to be copied keeps its rows.

    A gather along the last dim puts one block behind the other, which hpc-pack-collectives would put side by side by a transpose. Where products alone read
    them, as left operands, it is left out. Blocks along what is summed over are multiplied one after the other, in one sum (`hpc.implicit`: the product reads the
    part where it lies). That is done where reading the sum again costs no more than the copy.

        %t = nn.transpose %g {permutation = array<i64: 1, 0, 2>} : tensor<2x5x8xf32> -> tensor<5x2x8xf32>
        %x = nn.reshape %t : tensor<5x2x8xf32> -> tensor<5x16xf32>
        %y = nn.matmul %x, %w : tensor<5x16xf32>, tensor<16x6xf32> -> tensor<5x6xf32>

        %b = nn.reshape %g : tensor<2x5x8xf32> -> tensor<10x8xf32>
        %x0 = nn.slice %b {hpc.implicit, starts = array<i64: 0, 0>, ...} : tensor<10x8xf32> -> tensor<5x8xf32>
        %w0 = nn.slice %w {hpc.implicit, starts = array<i64: 0, 0>, ...} : tensor<16x6xf32> -> tensor<8x6xf32>
        %p0 = nn.matmul %x0, %w0 : ...
        ...
        %y = nn.add %p0, %p1 {hpc.adds_in_product} : ...

    Blocks along the rows of the result (a weight's gradient) make a product with one more dim. Columns of a result that a reduce-scatter deals out are computed block
    by block likewise, with one more dim of the right operand.
  }];
  let dependentDialects = ["::hpc::nn::NNDialect"];
}

def MultiplyWindows : Pass<"hpc-multiply-windows", "::mlir::ModuleOp"> {
  let summary = "convolutions are products that read their windows where the image lies (host alone)";
  let description = [{
    Windows that matrix products alone read, as their right operand, and the padding with zeros that nobody else reads, are marked `hpc.implicit`
    (compiler/ImplicitWindows.h). They get no buffer and no code: lower tells the product how they lie in the image (plan::Windows).

        %p = nn.pad %x {hpc.implicit, low = array<i64: 0, 0, 1>, ...} : tensor<2x8x30xf32> -> tensor<2x8x32xf32>
        %w = nn.window %p {hpc.implicit, strides = array<i64: 1>, ...} : tensor<2x8x32xf32> -> tensor<2x8x3x30xf32>
        %k = nn.reshape %w : tensor<2x8x3x30xf32> -> tensor<2x24x30xf32>
        %y = nn.matmul %weight, %k : tensor<16x24xf32>, tensor<2x24x30xf32> -> tensor<2x16x30xf32>

    A depthwise convolution in f32, whose import is a sum of products, becomes such a product first:

        %m = nn.mul %windows, %weight : tensor<2x8x1x3x30xf32>, tensor<8x1x3x1xf32> -> tensor<2x8x1x3x30xf32>
        %s = nn.reduce sum %m {axes = array<i64: 3>} : tensor<2x8x1x3x30xf32> -> tensor<2x8x1x1x30xf32>

        %s = nn.matmul %weight, %windows : tensor<8x1x3xf32>, tensor<2x8x3x30xf32> -> tensor<2x8x1x30xf32>

    A module that is also, or only, for a device stays as it is.
  }];
  let dependentDialects = ["::hpc::nn::NNDialect"];
}

def SplitReductions : Pass<"hpc-split-reductions", "::mlir::ModuleOp"> {
  let summary = "reductions with few results get partial results in a tree that the shape fixes";
  let description = [{
    The sum of 2048 rows, as the gradient of a bias, becomes the sum of the sums of 64 blocks of rows, which hpc-fuse-regions
    takes in where the rows are computed:

        %1 = nn.reduce sum %0 {axes = array<i64: 0, 1>} : tensor<2x1024x768xf32> -> tensor<1x1x768xf32>

        %a = nn.reshape %0 : tensor<2x1024x768xf32> -> tensor<64x32x768xf32>
        %b = nn.reduce sum %a {axes = array<i64: 1>} : tensor<64x32x768xf32> -> tensor<64x1x768xf32>
        %1 = nn.reduce sum %b {axes = array<i64: 0>} : tensor<64x1x768xf32> -> tensor<1x1x768xf32>

    Other reductions down columns, and sums of rows that cannot be cut so, are split where there are too few blocks of columns for a
    machine with many threads. One over rows and more reduces the rows first. f16 and bf16 are reduced in f32 then.
  }];
  let dependentDialects = ["::hpc::nn::NNDialect"];
}

def FuseRegions : Pass<"hpc-fuse-regions", "::mlir::ModuleOp"> {
  let summary = "what no library computes is grouped into nn.fused regions";
  let description = [{
    Producers join their consumers as long as one loop nest computes them all without repeating expensive work (README.md, Regions).

        %1 = nn.add %0, %bias : ...                     %2 = nn.fused "gelu_2x33x36_0" (%0, %bias) : ... {
        %2 = nn.gelu %1 : ...                             ...
                                                        }
        %3 = nn.matmul %2, %w : ...                     %3 = nn.matmul %2, %w : ...

    Sums of blocks of rows join what computes the rows, or another reader of them:

        %1 = nn.mul %g, %h : ...                        %1:2 = nn.fused "mul_2048x768_0" (%g, %h) : ... {
        %2 = nn.reshape %1 : ... -> 64x32x768             ...
        %3 = nn.reduce sum %2 {axes = [1]} : ...        }

    Left outside: matmul, parameters, collectives, transfers, reshapes of buffers (aliases), fill_tail that a matmul reads.
  }];
  let dependentDialects = ["::hpc::nn::NNDialect", "::hpc::dist::DistDialect"];
}

def WriteInPlace : Pass<"hpc-write-in-place", "::mlir::ModuleOp"> {
  let summary = "updates of parameters and states, and the largest temporaries, are written over what they read";
  let description = [{
    Where a result of @main says that it is the next value of a parameter or state (`nn.writes`), the region that makes it reads the old value at the same elements
    alone, and nothing reads that afterwards:

        %1 = nn.fused "sub_8x4_0" (%w, %g) : ...

        %1 = nn.fused "sub_8x4_0_over0" (%w, %g) {in_place = array<i64: 0>} : ...

    Otherwise lower copies the new value at the end. A temporary of at least half the size of the block's largest that nothing reads behind the region is
    written over too: logits by their gradient. So is a product of any size by the region that only finishes it, with a bias and at most an activation, so that a
    device may do both at once.

    A region whose code touches only part of its result (the rows of a table that ids name) and whose only reader adds it up over micro-batches adds it to the sum
    by itself: `adds_over` (README.md).
  }];
  let dependentDialects = ["::hpc::nn::NNDialect"];
}

def EmitKernels : Pass<"hpc-emit-kernels", "::mlir::ModuleOp"> {
  let summary = "every distinct region becomes a function of each target's code";
  let description = [{
    For "x86-64" an ELF shared object, the module attribute `hpc.code`; the CPU features that it needs are `hpc.cpu_features` (names as in /proc/cpuinfo). For "ptx"
    kernels of the same symbols, `hpc.ptx`; every nn.fused then says how it is started: `launch` = blocks, threads of a block, bytes of shared memory. Every
    nn.fused gets `rows` and `scalars` (README.md). The module is otherwise unchanged, and what is made for one target does not depend on the others, nor on the number of cores or on `kernel-cache`.
  }];
  let options = [
    Option<"cpu", "cpu", "std::string", "\"host\"", "the machine to generate for: host or x86-64-v3">,
    Option<"withoutCode", "without-code", "bool", "false", "describe the regions only; the plan has all it has but cannot run">,
    Option<"kernelCache", "kernel-cache", "std::string", "\"\"",
           "a folder that keeps the host's machine code of kernels from one compilation to the next; left out of use, with a remark, where LLVM is given flags of its own">,
    Option<"printKernels", "print-kernels", "bool", "false", "print the kernels as scf and arith to stderr, before machine code">,
    Option<"deviceCodeOnHost", "device-code-on-host", "std::string", "\"\"",
           "for tests: write the device's LLVM IR, compiled for this CPU, to this file (test/gpu/BlockRunner.h runs it)">,
  ];
}

def VerifyKernels : Pass<"hpc-verify-kernels", "::mlir::ModuleOp"> {
  let summary = "checks what phase kernels promises to lower";
  let description = [{
    Every op is a matmul, a parameter, a collective, a transfer, an alias or a fused region with code; a composite in a region is one that generated code
    claims on the module's target.
  }];
}
#endif
