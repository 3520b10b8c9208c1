// Kernels for hand-built plans, with the signature of plan::Kernel; they become the plan's code, as generated ones do.
#include <stdint.h>

/// args: x[rows][width], y[rows][width]; scalars: width. y = max(x, 0), a NaN stays.
void test_relu(void *const *args, const int64_t *scalars, int64_t begin, int64_t end) {
  const float *x = args[0];
  float *y = args[1];
  for (int64_t i = begin * scalars[0]; i < end * scalars[0]; ++i)
    y[i] = x[i] < 0 ? 0 : x[i];
}

/// args: y[rows][width], bias[width]; scalars: width. y += bias.
void test_add_bias(void *const *args, const int64_t *scalars, int64_t begin, int64_t end) {
  float *y = args[0];
  const float *bias = args[1];
  for (int64_t row = begin; row < end; ++row)
    for (int64_t i = 0; i < scalars[0]; ++i)
      y[row * scalars[0] + i] += bias[i];
}

/// args: x[rows][3], bias[3], y[rows][3], which may be x. y = max(x + bias, 0), a NaN stays.
void test_bias_relu(void *const *args, const int64_t *scalars, int64_t begin, int64_t end) {
  const float *x = args[0], *bias = args[1];
  float *y = args[2];
  for (int64_t i = begin * 3; i < end * 3; ++i)
    y[i] = x[i] + bias[i % 3] < 0 ? 0 : x[i] + bias[i % 3];
}
