@launch
kernel a(x: tensor<f32>[N]) { x[0] = 0.0 }
@launch(threads = 256)
kernel b(x: tensor<f32>[N]) { x[0] = 0.0 }
@launch(N)
kernel c(x: tensor<f32>[N]) { x[0] = 0.0 }
@launch(256, 2, 64, 1)
kernel d(x: tensor<f32>[N]) { x[0] = 0.0 }
@launch(0)
kernel e(x: tensor<f32>[N]) { x[0] = 0.0 }
