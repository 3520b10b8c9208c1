// Windows over images whose batch and channels are cut: a convolution by columns, then one by rows, whose sum stays partial through the zeros that
// are put round it and the windows over them (y = fold of a transposed convolution), a max pool, and groups cut as a factor of the channels.
module attributes {exec.meshes = ["dp=1:data, tp=2:tensor", "dp=2:data, tp=2:tensor", "dp=3:data, tp=2:tensor", "dp=2:data, tp=3:tensor"]} {
  func.func @main(%x: tensor<4x3x9x8xf32> {dist.seed = #dist.sharding<"[4@dp, 3, 9, 8]">},
                  %g: tensor<4x10x4xf32>)
      -> (tensor<4x7x1x9xf32>, tensor<4x5x1x1x4x3xf32>, tensor<4x5x2x4xf32>) {
    %w0 = nn.parameter "w0" stored <file = "w", bytes = 540, hashes = [0]> {dist.seed = #dist.sharding<"[5@tp, 27]">} : tensor<5x27xf32>
    %w1 = nn.parameter "w1" stored <file = "w", bytes = 560, hashes = [0]> {dist.seed = #dist.sharding<"[7, (5@tp, 4)]">} : tensor<7x20xf32>
    %w2 = nn.parameter "w2" stored <file = "w", bytes = 80, hashes = [0]> {dist.seed = #dist.sharding<"[5@tp, 2, 2]">} : tensor<5x2x2xf32>
    // 3x3, stride 2, pads 1: columns.
    %p = nn.pad %x {low = array<i64: 0, 0, 1, 1>, high = array<i64: 0, 0, 1, 1>, value = 0.0 : f32} : tensor<4x3x9x8xf32> -> tensor<4x3x11x10xf32>
    %0 = nn.window %p {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>} : tensor<4x3x11x10xf32> -> tensor<4x3x3x3x5x4xf32>
    %1 = nn.reshape %0 : tensor<4x3x3x3x5x4xf32> -> tensor<4x27x20xf32>
    %2 = nn.matmul %w0, %1 : tensor<5x27xf32>, tensor<4x27x20xf32> -> tensor<4x5x20xf32>
    %3 = nn.reshape %2 : tensor<4x5x20xf32> -> tensor<4x5x5x4xf32>
    // 2x2, dilated by 2: rows.
    %4 = nn.window %3 {strides = array<i64: 1, 1>, dilations = array<i64: 2, 2>} : tensor<4x5x5x4xf32> -> tensor<4x5x2x2x3x2xf32>
    %5 = nn.reshape %4 : tensor<4x5x2x2x3x2xf32> -> tensor<4x20x6xf32>
    %6 = nn.matmul %w1, %5 : tensor<7x20xf32>, tensor<4x20x6xf32> -> tensor<4x7x6xf32>
    // Windows of a partial sum with zeros round it.
    %7 = nn.pad %6 {low = array<i64: 0, 0, 2>, high = array<i64: 0, 0, 3>, value = 0.0 : f32} : tensor<4x7x6xf32> -> tensor<4x7x11xf32>
    %8 = nn.window %7 {strides = array<i64: 1>, dilations = array<i64: 1>} : tensor<4x7x11xf32> -> tensor<4x7x3x9xf32>
    %9 = nn.reduce sum %8 {axes = array<i64: 2>} : tensor<4x7x3x9xf32> -> tensor<4x7x1x9xf32>
    // A max pool of the columns, -inf round them.
    %10 = nn.pad %3 {low = array<i64: 0, 0, 1, 0>, high = array<i64: 0, 0, 1, 0>, value = 0xFF800000 : f32} : tensor<4x5x5x4xf32> -> tensor<4x5x7x4xf32>
    %12 = nn.slice %10 {starts = array<i64: 0, 0, 0, 0>, steps = array<i64: 1, 1, 1, 1>} : tensor<4x5x7x4xf32> -> tensor<4x5x6x4xf32>
    %13 = nn.window %12 {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>} : tensor<4x5x6x4xf32> -> tensor<4x5x3x2x4x3xf32>
    %14 = nn.reduce max %13 {axes = array<i64: 2, 3>} : tensor<4x5x3x2x4x3xf32> -> tensor<4x5x1x1x4x3xf32>
    // Five groups of two channels.
    %15 = nn.reshape %g : tensor<4x10x4xf32> -> tensor<4x5x2x4xf32>
    %16 = nn.matmul %w2, %15 : tensor<5x2x2xf32>, tensor<4x5x2x4xf32> -> tensor<4x5x2x4xf32>
    return %9, %14, %16 : tensor<4x7x1x9xf32>, tensor<4x5x1x1x4x3xf32>, tensor<4x5x2x4xf32>
  }
}
