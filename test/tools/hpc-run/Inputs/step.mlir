// The step of train.test: a linear layer, its squared error and its gradients by hand. The test appends clipping and AdamW.
module attributes {hpc.phase = "train"} {
  func.func @main(%x: tensor<6x5xf32> {nn.name = "x"},
                  %t: tensor<6x7xf32> {nn.name = "t"})
      -> (tensor<f32> {nn.name = "loss"}, tensor<5x7xf32> {nn.gradient = "w"}, tensor<7xf32> {nn.gradient = "b"}) {
    %w = nn.parameter "w" {value = dense<0.5> : tensor<5x7xf32>} : tensor<5x7xf32>
    %b = nn.parameter "b" {value = dense<0.25> : tensor<7xf32>} : tensor<7xf32>
    %xw = nn.matmul %x, %w : tensor<6x5xf32>, tensor<5x7xf32> -> tensor<6x7xf32>
    %y = nn.add %xw, %b : tensor<6x7xf32>, tensor<7xf32> -> tensor<6x7xf32>
    %e = nn.sub %y, %t : tensor<6x7xf32>, tensor<6x7xf32> -> tensor<6x7xf32>
    %e2 = nn.mul %e, %e : tensor<6x7xf32>, tensor<6x7xf32> -> tensor<6x7xf32>
    %sum = nn.reduce sum %e2 {axes = array<i64: 0, 1>} : tensor<6x7xf32> -> tensor<1x1xf32>
    %total = nn.reshape %sum : tensor<1x1xf32> -> tensor<f32>
    %mean = nn.constant dense<0.0238095243> : tensor<f32> : tensor<f32>
    %loss = nn.mul %total, %mean : tensor<f32>, tensor<f32> -> tensor<f32>
    %factor = nn.constant dense<0.0476190485> : tensor<f32> : tensor<f32>
    %dws = nn.matmul %x, %e {transpose_lhs} : tensor<6x5xf32>, tensor<6x7xf32> -> tensor<5x7xf32>
    %dw = nn.mul %dws, %factor : tensor<5x7xf32>, tensor<f32> -> tensor<5x7xf32>
    %dbs = nn.reduce sum %e {axes = array<i64: 0>} : tensor<6x7xf32> -> tensor<1x7xf32>
    %dbr = nn.reshape %dbs : tensor<1x7xf32> -> tensor<7xf32>
    %db = nn.mul %dbr, %factor : tensor<7xf32>, tensor<f32> -> tensor<7xf32>
    return %loss, %dw, %db : tensor<f32>, tensor<5x7xf32>, tensor<7xf32>
  }
}
