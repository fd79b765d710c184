@autotune(BLOCK = [64, 128])
kernel k(X: tensor<f32>[N]) {
}
