// RUN: hpc-opt %s --hpc-annotate-zero=level=2 -verify-diagnostics

// Level 2 promises accumulators of a piece; giving level 1 in silence would break what the user counts on for memory.
module attributes {dist.mesh = #dist.mesh<"mb=4:time, dp=2:data, tp=1:tensor">} {
  // expected-error @below {{[unsupported] --zero=2 with --micro-batches=4: gradients are not scattered in each micro-batch yet; use --zero=1 or 3, or --micro-batches=1}}
  func.func @main(%mb: tensor<7xf32> {nn.state = "momentum/b", nn.initial = 0.0 : f64}) {
    %b = nn.parameter "b" {file = "w", bytes = 28 : i64, hashes = array<i64: 0>} : tensor<7xf32>
    return
  }
}
