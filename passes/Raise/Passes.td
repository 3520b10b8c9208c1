// The passes of phase raise, in the order in which they run. Each leaves a program that computes the same.
#ifndef HPC_PASSES_RAISE
#define HPC_PASSES_RAISE
include "mlir/Pass/PassBase.td"

def TieWeights : Pass<"hpc-tie-weights", "::mlir::ModuleOp"> {
  let summary = "make parameters with equal content one parameter";
  let description = [{
    Equal bytes of one type are one weight; its aliases are joined. A rank-2 weight that holds another one transposed becomes an nn.transpose of it.
    First, since later passes compare weights as values.

        %a = nn.parameter "wte" ... : tensor<503x40xf32>           %a = nn.parameter "wte" {aliases = ["head"]} : tensor<503x40xf32>
        %b = nn.parameter "head" ... : tensor<40x503xf32>    ->    %b = nn.transpose %a {permutation = array<i64: 1, 0>} : ...
  }];
  let options = [Option<"folder", "folder", "std::string", "\".\"", "folder that relative file names of parameters start from">];
  let dependentDialects = ["::hpc::nn::NNDialect"];
}

def Simplify : Pass<"hpc-simplify", "::mlir::ModuleOp"> {
  let summary = "remove what computes nothing, and give equal things one spelling";
  let description = [{
    pow(x, 2) -> x * x; x * 1, x + 0, x - 0, x / 1 -> x; x / 2^n -> x * 2^-n; transposes of transposes are one, also round a reshape of leading dims; views that change nothing go; a transpose
    of an operand's last two dims becomes a flag of the matmul; a selection by a constant goes, dead code goes; a GatherND whose
    indices begin with their own place in a dim has a batch dim more; a slice of one part of a concatenation does not read the others. Nothing here rounds differently. Before the matchers, so that each of
    them sees fewer spellings.
  }];
  let dependentDialects = ["::hpc::nn::NNDialect"];
}

def RaiseLayerNorm : Pass<"hpc-raise-layer-norm", "::mlir::ModuleOp"> {
  let summary = "spelled-out layer norm and RMS norm -> nn.layer_norm, nn.rms_norm";
  let description = [{
    (x - mean) * 1/sqrt(mean((x - mean)^2) + epsilon) [* weight] [+ bias] over the last dim, in the usual spellings of mean, square and 1/sqrt.
    Before hpc-raise-linear: one op lets a reshape of leading dims pass where nine would each have to.
  }];
  let dependentDialects = ["::hpc::nn::NNDialect"];
}

def RaiseGelu : Pass<"hpc-raise-gelu", "::mlir::ModuleOp"> {
  let summary = "spelled-out GELU, by erf or by tanh -> nn.gelu";
  let description = [{
    0.5 x (1 + erf(x / sqrt 2)) and 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), in any association and order of the products.
  }];
  let dependentDialects = ["::hpc::nn::NNDialect"];
}

def RaiseSoftmax : Pass<"hpc-raise-softmax", "::mlir::ModuleOp"> {
  let summary = "exp(x - max) / sum in pieces -> nn.softmax";
  let dependentDialects = ["::hpc::nn::NNDialect"];
}

def RaiseCrossEntropy : Pass<"hpc-raise-cross-entropy", "::mlir::ModuleOp"> {
  let summary = "a class's part of a spelled-out log(softmax) -> nn.cross_entropy";
  let description = [{
    A policy's or a preference's loss gathers the log-probability of each token from those of the whole vocabulary, three arrays of that size, and the class dim could not be cut. Only where gathers are
    all that reads them. A label that may be negative counts from the last class, as the gather's does.

        %logs = nn.sub %shifted, %logSum : tensor<4x503xf32>, ...           %loss, %top, %share = nn.cross_entropy %logits, %labels ...
        %own = nn.gather_nd %logs, %labels {batch_dims = 1 : i64}     ->    %own = nn.neg %loss
  }];
  let dependentDialects = ["::hpc::nn::NNDialect"];
}

def RaiseLinear : Pass<"hpc-raise-linear", "::mlir::ModuleOp"> {
  let summary = "work on [B, S, C] where the exporter merged leading dims to [B*S, C]";
  let description = [{
    A reshape that merges leading dims sinks below matmuls, elementwise ops, norms, softmax, embeddings, transposes, until it meets the one that parts
    them again, or the end. The same brings [B*H, S, D] back to [B, H, S, D], which is why attention is raised after it.

        %r = nn.reshape %x : tensor<4x33x40xf32> -> tensor<132x40xf32>
        %y = nn.matmul %r, %w : tensor<132x40xf32>, ... -> ...       ->    %y = nn.matmul %x, %w : tensor<4x33x40xf32>, ... -> tensor<4x33x120xf32>
        %z = nn.reshape %y : tensor<132x120xf32> -> tensor<4x33x120xf32>
  }];
  let dependentDialects = ["::hpc::nn::NNDialect"];
}

def SplitProducts : Pass<"hpc-split-products", "::mlir::ModuleOp"> {
  let summary = "a product with a weight whose columns are read in unequal parts -> a product a part";
  let description = [{
    q, k and v of grouped attention, or q and one k and v for all heads, that are columns of one weight: their cuts over heads do not nest in the columns of all. With
    a weight each, a slice of the stored one, every part is cut by itself. Parts of one size need none of this: `(3, rest)` cuts them alike.

        %y = nn.matmul %x, %w : ..., tensor<32x48xf32> -> tensor<4x12x48xf32>         %wq = nn.slice %w {starts = [0, 0]} : ... -> tensor<32x32xf32>
        %q = nn.slice %y {starts = [0, 0, 0]} : ... -> tensor<4x12x32xf32>     ->     %q = nn.matmul %x, %wq : ... -> tensor<4x12x32xf32>
        %k = nn.slice %y {starts = [0, 0, 32]} : ... -> tensor<4x12x8xf32>            (and so for k and v)
        %v = nn.slice %y {starts = [0, 0, 40]} : ... -> tensor<4x12x8xf32>
  }];
  let dependentDialects = ["::hpc::nn::NNDialect"];
}

def RaiseAttention : Pass<"hpc-raise-attention", "::mlir::ModuleOp"> {
  let summary = "matmul(softmax(masked, scaled q k^T), v) -> nn.attention";
  let description = [{
    Scores may be scaled by constants, biased, and masked by select or by adding a mask of 0 and a very low number. A comparison of iotas along the last two dims
    is the causal mask; any other condition becomes a bias. A dropout of the weights goes with them. What would not compute the same in exact arithmetic (a masked
    element counting as exactly 0) is left as it stands. A mask that is a weight without content may be causal, which nobody can know: one remark says what that costs.
  }];
  let dependentDialects = ["::hpc::nn::NNDialect"];
}

def VerifyRaised : Pass<"hpc-verify-raised", "::mlir::ModuleOp"> {
  let summary = "check: no spelled-out layer norm, GELU or attention that the matchers know is left; equal weights are one";
  let options = [Option<"folder", "folder", "std::string", "\".\"", "folder that relative file names of parameters start from">];
}
#endif
