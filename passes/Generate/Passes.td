// The passes of phase generate, in the order in which they run: a graph of whole sequences becomes one step of generation, still serial.
#ifndef HPC_PASSES_GENERATE
#define HPC_PASSES_GENERATE
include "mlir/Pass/PassBase.td"

def KeepLogits : Pass<"hpc-keep-logits", "::mlir::ModuleOp"> {
  let summary = "keep the output of logits alone, and the input of ids";
  let description = [{
    Logits are the output of floats [batch, length, vocabulary]; of several, the one with as many columns as a table has rows that ids look up. Other outputs (keys and values of this step, hidden states)
    and what only they need are taken away, then inputs that nothing reads. What remains must be ids [batch, length].

        func @main(%ids, %mask) -> (%logits, %present)   ->   func @main(%ids) -> %logits
  }];
  let options = [Option<"length", "length", "int64_t", "0", "positions of a sequence at most">];
}

def HoldKeys : Pass<"hpc-hold-keys", "::mlir::ModuleOp"> {
  let summary = "turn what a virtual rank computes of a sequence into what a step computes, with keys and values in states";
  let description = [{
    The program is the one that hpc-annotate-steps and the passes of propagate and partition make. A rank's place becomes the step scalar `position`, the first position of the step, and `row`, the row
    of the step that has a result. Keys and values that attention gathers become states, with those of the step in place. Whatever else crosses ranks is refused: it mixes positions in a way that no
    state holds. The mesh and all shardings are taken away.

        %o = dist.offset {dim = #dist.sharding<"[32@cp]">}            the argument %position
        %s = dist.slice %table {axis = "cp", ...}               ->    %s = nn.gather %table, %rows (position, position + 1, ...)
        %k = dist.all_gather %new {axis = "cp", from_dim = 2}         %k = nn.update_slice %state, %new, %position {dim = 2 : i64}, a result with nn.writes
  }];
  let dependentDialects = ["::hpc::nn::NNDialect"];
}

def ProveCausal : Pass<"hpc-prove-causal", "::mlir::ModuleOp"> {
  let summary = "check that no query sees a later key, and say so in the attribute that attention has for it";
  let description = [{
    A state has zeros, or what a padded chunk left, at later positions. An attention with keys in a state has to hide these: by `causal_offset` of at most 0, or by masks (`visible`, `bias`,
    `query_positions`) that follow from constants and positions. These are evaluated for every step, in the interpreter. Then `causal_offset = 0` says the same, and no step reads later keys.

        nn.attention %q, %k, %v visible %m                       ->    nn.attention %q, %k, %v visible %m query_start %position {causal_offset = 0 : i64}

    `hpc.window = W` is set where masks also hide each key that is W positions or more before the query, and W is less than all.
  }];
  let dependentDialects = ["::hpc::nn::NNDialect"];
}

def KeepWindows : Pass<"hpc-keep-windows", "::mlir::ModuleOp"> {
  let summary = "keep of a window's keys and values the rows that a chunk sees, in a ring";
  let description = [{
    Where hpc-prove-causal has found that no query sees a key W positions or more before its own, the state holds W + chunk - 1 rows in place of all L, if these are fewer: position p is in row p mod rows. Both
    entries of a plan have the chunk of prefill, so they share the state. Attention reads the rows in the order in which they lie. Its masks and biases become those of the positions that the rows hold; with
    several rows a step, `visible` hides the later ones, too. `query_start` ends at the last row: until the ring is full, rows that nothing has written are not read.

        %k = nn.update_slice %state, %new, %position             ->    %k = nn.update_slice %state, %new, %position {wraps}
        nn.attention %q, %k, %v query_start %position                  nn.attention %q, %k, %v visible %m query_start %row   // min(position, rows - 1)
  }];
  let options = [Option<"chunk", "chunk", "int64_t", "1", "positions of a step of prefill">];
  let dependentDialects = ["::hpc::nn::NNDialect"];
}

def VerifyGenerated : Pass<"hpc-verify-generated", "::mlir::ModuleOp"> {
  let summary = "check: a step from ids, position and states to logits of one row and written states; nothing of dist is left";
}
#endif
