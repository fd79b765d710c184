@autotune(x in [1, 2])
kernel k(x: tensor<f32>[N], y: tensor<f32>[N], y: f32, N: i32) {
}
