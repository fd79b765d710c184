//@ kernel saxby
kernel saxpy(x: tensor<f32>[N]) { x[0] = 0.0 }
kernel scale(x: tensor<f32>[N]) { x[0] = 0.0 }
