@launch(16, 64)
kernel k(X: tensor<f32>[N]) {
}
