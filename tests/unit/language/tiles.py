"""Rules of tiles."""

from __future__ import annotations

import math

import numpy as np

from tests.unit.language.rule import THREAD, I, N, Rule, W, X

SLICES = "Tiles"
FOLDS = "Folds along an axis"
PRODUCTS = "Products"
MAKING = "Making and reshaping tiles"
ROWS = "Rows by number"
ELEMENTS = "Elements and slices of a tile"
PROMISE = "A promise instead of a mask"


def _functions(x: np.ndarray) -> np.ndarray:
    sizes = np.floor(x) + np.ceil(x) + np.rint(x) + np.trunc(x) + x + 2 * x + 1
    roots = x**-0.5 + np.exp(-x) + np.exp2(-x) + np.log(x) + np.log2(x) + x**0.5
    waves = np.sin(x) + np.cos(x) + np.tanh(x) + np.vectorize(math.erf)(x) + 1 / (1 + np.exp(-x))
    return sizes + roots + waves + np.minimum(x, 3) + np.maximum(x, 3) + np.sin(X[3])


_FUNCTIONS = _functions(X.astype(np.float64) + 0.25)

RULES = (
    Rule(
        SLICES,
        "the length of a slice is a constant, where it begins is not",
        "Y[n * 8 :+ 8] = X[n :+ 8]\nY[n : n + 2] = X[: 2]",
        np.r_[np.zeros(3), X[:2], np.zeros(19), X[3:11], np.zeros(32)],
        "Y[0 :+ n] = X[:]",
        "the length of a slice is a compile-time constant",
        "n",
    ),
    Rule(
        SLICES,
        "`:` takes an axis whose extent is a constant",
        "Y[:] = X[:]",
        X,
        "let t = W[0 :+ 1, :]",
        "`:` takes all of axis 1 of `W`, whose extent `N` is known only at launch",
        ":",
    ),
    Rule(
        SLICES,
        "there is a subscript for each axis; a point among slices has extent 1",
        "Y[0 :+ 16] = flat(W[n, 0 :+ 16])",
        np.r_[W[3], np.zeros(48)],
        "Y[0] = W[0]",
        "`W` has 2 axes, but there is 1 subscript",
        "[0]",
    ),
    Rule(
        SLICES,
        "outside its tensor a tile reads as 0 and writes nothing",
        "let t = W[2 :+ 4, 8 :+ 16]\nY[:] = flat(t)\nY[60 :+ 16] = X[10 :+ 16]",
        np.r_[np.pad(W[2:, 8:], ((0, 2), (0, 8))).ravel()[:60], X[10:14]],
        "Y[64] = 1",
        "subscript 64 is outside axis 0 of `Y`, which has 64 elements",
        "64",
    ),
    Rule(
        SLICES,
        "tiles broadcast over axes of extent 1 and scalars, and have as many axes",
        "let t = W[0 :+ 4, 0 :+ 16]\nY[:] = flat(t - t[0 :+ 1, :] + t[:, 0 :+ 1] * f32(n))",
        (W - W[:1] + W[:, :1] * N).ravel(),
        "Y[:] = X[:] + W[0 :+ 1, 0 :+ 64]",
        "`+`: tile<f32>[64] and tile<f32>[1, 64] have different numbers of axes",
        "X[:] + W[0 :+ 1, 0 :+ 64]",
    ),
    Rule(
        SLICES,
        "what is written has the shape of the slice, or is a scalar",
        "Y[0 :+ 32] = X[32 :+ 32]\nY[32 :+ 32] = 7",
        np.r_[X[32:], np.full(32, 7)],
        "Y[0 :+ 32] = X[:]",
        "this slice of `Y` is tile<f32>[32], but this value is tile<f32>[64]",
        "X[:]",
    ),
    Rule(
        SLICES,
        "a tile is no larger than a CTA can hold",
        "Y[:] = flat(full(0.5, 128, 64)[n :+ 1, :])",
        0.5,
        "let t = full(0.0, 1024, 1025)",
        "a tile of 1049600 elements is too large: a CTA holds at most 1048576",
        "full(0.0, 1024, 1025)",
    ),
    Rule(
        SLICES,
        "elementwise built-ins take as many values of the types as they are for",
        "Y[:] = where(X[:] > 4, min(sqrt(X[:]), 5), clamp(X[:], 1, 3))",
        np.where(X > 4, np.minimum(np.sqrt(X), 5), np.clip(X, 1, 3)),
        "Y[0] = sqrt(n)",
        "`sqrt` takes floats, not i32",
        "sqrt(n)",
    ),
    Rule(
        SLICES,
        "functions of floats are of scalars and tiles alike",
        """
let x = X[:] + 0.25
let sizes = floor(x) + ceil(x) + round(x) + trunc(x) + abs(-x) + fma(x, 2, 1)
let roots = rsqrt(x) + exp(-x) + exp2(-x) + log(x) + log2(x) + pow(x, 0.5)
let waves = sin(x) + cos(x) + tanh(x) + erf(x) + sigmoid(x)
Y[:] = sizes + roots + waves + minnan(x, 3) + maxnan(x, 3) + sin(X[n])
""",
        _FUNCTIONS,
        "Y[:] = pow(X[:])",
        "`pow` takes 2 arguments, not 1",
        "pow(X[:])",
    ),
    Rule(
        SLICES,
        "`where` chooses by bools",
        "Y[:] = where(iota(64) < n, 1, X[:])",
        np.where(THREAD < N, 1, X),
        "Y[:] = where(X[:], 1, 2)",
        "the first argument of `where` is a bool or a tile of bools, not tile<f32>[64]",
        "X[:]",
    ),
    Rule(
        SLICES,
        "`bitcast` keeps the width",
        "Y[:] = f32(bitcast<i32>(X[:]) >> 23)",
        X.view(np.int32) >> 23,
        "Y[0] = bitcast<f32>(f16(X[0]))",
        "`bitcast` keeps the width: f16 has 16 bits, f32 has 32 bits",
        "bitcast<f32>(f16(X[0]))",
    ),
    Rule(
        FOLDS,
        "a fold names axes that the tile has; they stay with extent 1",
        "let t = W[0 :+ 4, 0 :+ 16]\nY[:] = flat(t - max<over 0>(t) + sum<over 0, 1>(t) * 0)",
        (W - W.max(axis=0)).ravel(),
        "let t = sum<over 1>(X[:])",
        "tile<f32>[64] has no axis 1",
        "over 1",
    ),
    Rule(
        FOLDS,
        "a fold says what it folds over",
        "Y[:] = flat(full(1.0, 1, 64) * prod<over 0>(min<over 1>(W[0 :+ 4, 1 :+ 15])))",
        np.prod(W[:, 1:].min(axis=1)),
        "let t = prod(X[:])",
        "`prod` does not say what it folds over",
        "prod(X[:])",
    ),
    Rule(
        FOLDS,
        "`any`, `all` and `count` fold bools",
        "let t = X[:] > 30\nif any<over 0>(t)[0] && !all<over 0>(t)[0] {\n"
        "  Y[:] = f32(count<over 0>(t)) + f32(sum<over 0>(t))\n}",
        6,
        "let t = any<over 0>(X[:])",
        "`any` folds bools, but this is tile<f32>[64]",
        "any<over 0>(X[:])",
    ),
    Rule(
        FOLDS,
        "places are along one axis, the first of several",
        "let t = W[0 :+ 4, 0 :+ 16] % 5\n"
        "Y[0 :+ 4] = f32(flat(argmax<over 1>(t)))\nY[4 :+ 16] = f32(flat(argmin<over 0>(t)))",
        np.r_[np.argmax(W % 5, axis=1), np.argmin(W % 5, axis=0), np.zeros(44)],
        "let t = argmax<over 0, 1>(W[0 :+ 4, 0 :+ 16])",
        "`argmax` goes along one axis",
        "over 0, 1",
    ),
    Rule(
        FOLDS,
        "`rowsum` and its like fold tiles with 2 axes",
        "let t = W[0 :+ 4, 0 :+ 16]\n"
        "let r = rowsum(t) + rowmax(t) + rowmin(t) + f32(rowargmax(t))\n"
        "Y[0 :+ 4] = flat(r)",
        np.r_[W.sum(axis=1) + W.max(axis=1) + W.min(axis=1) + 15, np.zeros(60)],
        "let t = rowsum(X[:])",
        "`rowsum` folds the rows of a tile with 2 axes, but this is tile<f32>[64]",
        "rowsum(X[:])",
    ),
    Rule(
        FOLDS,
        "a scan runs along one axis",
        "Y[:] = scan<over 0>(X[:]) + scanmax<over 0>(-X[:]) + cumsum(X[:])",
        2 * np.cumsum(X),
        "let t = scan<over 0, 1>(W[0 :+ 4, 0 :+ 16])",
        "`scan` goes along one axis",
        "over 0, 1",
    ),
    Rule(
        FOLDS,
        "`pad` and `valid` are of a slice of a tensor",
        "Y[:] = where(valid(X[32 :+ 64]), pad(X[32 :+ 64], -1), pad(X[60 :+ 64], f32(n)))",
        np.r_[X[32:], np.full(32, 3)],
        "let t = pad(X[:] + 1, 0)",
        "`pad` takes a slice of a tensor",
        "X[:] + 1",
    ),
    Rule(
        PRODUCTS,
        "the axes that are summed over are equally long",
        "let w = W[0 :+ 4, 0 :+ 16]\nlet c = dot(w, transpose(w)) + dot_t(w, w)\n"
        "Y[0 :+ 16] = flat(c)\nY[16 :+ 16] = flat(t_dot(w, w)[0 :+ 1, :])",
        np.r_[(2 * W @ W.T).ravel(), (W.T @ W)[0], np.zeros(32)],
        "let t = dot(W[0 :+ 4, 0 :+ 16], W[0 :+ 4, 0 :+ 16])",
        "`dot` of tile<f32>[4, 16] and tile<f32>[4, 16]: the axes that are summed over have extents"
        " 16 and 4",
        "dot(W[0 :+ 4, 0 :+ 16], W[0 :+ 4, 0 :+ 16])",
    ),
    Rule(
        PRODUCTS,
        "matrices have two axes",
        "let x = i8(iota(64))\n"
        "Y[:] = flat(f32(dot(reshape(x, 64, 1), reshape(x, 1, 64))[n :+ 1, :]))",
        3 * THREAD,
        "let t = dot(X[:], W[0 :+ 64, 0 :+ 4])",
        "`dot` takes a tile with at least 2 axes, but this is tile<f32>[64]",
        "X[:]",
    ),
    Rule(
        MAKING,
        "extents are constants",
        "Y[:] = full(f32(n), 64) + f32(iota(64)) + f32(flat(iota<1>(4, 16)))",
        3 + THREAD + THREAD % 16,
        "let t = full(0.0, n)",
        "an extent in `full` is a compile-time integer of at least 1",
        "n",
    ),
    Rule(
        MAKING,
        "`iota` counts along an axis that it has",
        "Y[:] = flat(f32(iota<0>(4, 16)))",
        THREAD // 16,
        "let t = iota<2>(4, 4)",
        "`iota` of 2 extents has no axis 2",
        "iota<2>(4, 4)",
    ),
    Rule(
        MAKING,
        "`reshape` keeps the number of elements",
        "Y[:] = flat(transpose(reshape(X[:], 8, 8)))",
        X.reshape(8, 8).T.ravel(),
        "let t = reshape(X[:], 8, 9)",
        "tile<f32>[64] has 64 elements, the new shape 72",
        "reshape(X[:], 8, 9)",
    ),
    Rule(
        MAKING,
        "triangles are of tiles with two axes",
        "let t = reshape(X[:], 8, 8)\nY[:] = flat(tril(t) + triu(t, 1) - tril(t, -2))",
        (X.reshape(8, 8) - np.tril(X.reshape(8, 8), -2)).ravel(),
        "let t = tril(X[:])",
        "`tril` takes a tile with at least 2 axes, but this is tile<f32>[64]",
        "X[:]",
    ),
    Rule(
        MAKING,
        "tiles side by side differ along that axis alone",
        "Y[:] = cat<0>(X[0 :+ 16], X[32 :+ 40], X[16 :+ 8])",
        np.r_[X[:16], X[32:], np.zeros(8), X[16:24]],
        "let t = cat<0>(W[0 :+ 4, 0 :+ 8], W[0 :+ 4, 0 :+ 16])",
        "`cat<0>` of tile<f32>[4, 8] and tile<f32>[4, 16]: they differ in more than the extent of"
        " axis 0",
        "W[0 :+ 4, 0 :+ 16]",
    ),
    Rule(
        ROWS,
        "subscripts are integers",
        "Y[:] = X[I[:]] + X[u8(iota(64)) + 60]",
        X[I] + np.r_[X[60:], np.zeros(60)],
        "Y[:] = X[X[:]]",
        "subscripts are integers, but this is tile<f32>[64]",
        "X[:]",
    ),
    Rule(
        ROWS,
        "one subscript is a tile; `gather` has one for each element",
        "let t = gather(W, iota<1>(4, 16) % 4, 0)\nY[:] = flat(t + W[iota(4), 0 :+ 16])",
        (W[np.arange(16) % 4, np.arange(16)] + W).ravel(),
        "let t = W[I[0 :+ 4], I[0 :+ 4]]",
        "at most one subscript is a tile",
        "[I[0 :+ 4], I[0 :+ 4]]",
    ),
    Rule(
        ROWS,
        "`gather` has subscripts of as many axes as the tensor",
        "Y[0 :+ 4] = flat(gather(W, full<i32>(n, 1, 4), 0))",
        np.r_[W[3, :4], np.zeros(60)],
        "let t = gather(W, I[0 :+ 4], 0)",
        "`gather` takes as many axes of subscripts as `W` has, 2, but this is tile<i32>[4]",
        "I[0 :+ 4]",
    ),
    Rule(
        ROWS,
        "rows are written, but not updated, by number",
        "Y[I[:] + 32] = X[:]",
        np.r_[np.zeros(32), X[::-1][:32]],
        "Y[I[:]] += X[:]",
        "`+=` with a tile of subscripts",
        "Y[I[:]] += X[:]",
    ),
    Rule(
        ELEMENTS,
        "a `var` takes elements and slices, a `let` does not",
        "var t = X[:]\nt[n :+ 8] = X[8 :+ 8] * 2\nif ctx.thread == 0 { t[63] = -1 }\nY[:] = t",
        np.r_[X[:3], 2 * X[8:16], X[11:63], -1],
        "let t = X[:]\nt[0] = 1",
        "`t` is a `let` and cannot be assigned to",
        "t",
    ),
    Rule(
        ELEMENTS,
        "a tile has subscripts like a tensor",
        "let t = reshape(X[:], 8, 8)\nY[:] = flat(t[n :+ 1, :])[0 :+ 1] + t[n, 1]",
        X[24] + X[25],
        "let t = iota(4)[ctx.thread, 0]",
        "`tile` has 1 axis, but there are 2 subscripts",
        "[ctx.thread, 0]",
    ),
    Rule(
        ELEMENTS,
        "the extents in a tile's type are constants",
        "let t: tile<f32>[64] = 0\nY[:] = t + 1",
        1,
        "var t: tile<f32>[n]",
        "the extents of a tile are compile-time constants, which `n` is not",
        "n",
    ),
    Rule(
        PROMISE,
        "`@aligned` is about an extent of a parameter",
        """
@aligned(N = 16)
kernel k(W: tensor<f32>[M, N], Y: tensor<f32>[64]) { Y[:] = flat(W[0 :+ 4, 0 :+ 16]) }
""",
        W.ravel(),
        "@aligned(K = 64)\nkernel k(X: tensor<f32>[N]) { }",
        "no parameter has an axis called `K`",
        "K",
    ),
)
