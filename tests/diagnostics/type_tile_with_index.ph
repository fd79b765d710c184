kernel k(x: tensor<i32>[N]) {
  x[0 :+ 16] = x[0 :+ 16] + ctx.block.x
}
