// embedding: O[i, :] = W[T[i], :], the rows of a table that a list of numbers names.
//
// Teaches: a tile of subscripts. `W[rows, k :+ COLUMNS]` reads a row for each element of the tile
// `rows`; a number outside the table reads as 0. A row's elements lie side by side, so each access
// still moves 16 bytes.
//
// Launch ceildiv(I, ROWS) by ceildiv(D, COLUMNS) CTAs along x and y.
@autotune(ROWS in [16, 64], COLUMNS in [64, 256])
kernel embedding(T: tensor<i32>[I], W: tensor<f32>[V, D], O: tensor<f32>[I, D]) {
  let i = ctx.block.x * ROWS
  let k = ctx.block.y * COLUMNS
  let rows = T[i :+ ROWS]
  O[i :+ ROWS, k :+ COLUMNS] = W[rows, k :+ COLUMNS]
}
