"""Rules of control flow and of attributes."""

from __future__ import annotations

import numpy as np

from tests.unit.language.rule import THREAD, Rule, W, X, first

FLOW = "Control flow"
TUNING = "Constants to tune"
ATTRIBUTES = "Attributes"

_SQUARES = W.reshape(4, 4, 4).swapaxes(0, 1)
"""Four columns of W after the other four."""

RULES = (
    Rule(
        FLOW,
        "a condition is one bool",
        "if n > 2 { Y[0] = 1 } else { Y[0] = 2 }\nvar i = 0\n"
        "while X[i] < 3 { i += 1 }\nY[1] = f32(i)",
        first(1, 6),
        "if n { Y[0] = 1 }",
        "a condition is one bool, but this is i32",
        "n",
    ),
    Rule(
        FLOW,
        "`&&` and `||` look at their right side only if they must",
        "let i = ctx.thread\nif i < 60 && X[i + 4] > 3 { Y[i] = 1 }\n"
        "if i > 62 || X[i + 1] < 1 { Y[i] = 2 }",
        np.where((THREAD > 62) | (THREAD < 1), 2, (THREAD < 60) & (THREAD / 2 + 2 > 3)),
        "if n && true { Y[0] = 1 }",
        "`&&` takes bools, but this is i32",
        "n",
    ),
    Rule(
        FLOW,
        "`else` stands on the line of the `}` before it",
        "if n > 5 {\n  Y[0] = 1\n} else if n > 2 {\n  Y[0] = 2\n} else {\n  Y[0] = 3\n}",
        first(2),
        "if n > 0 { Y[0] = 1 }\nelse { Y[0] = 2 }",
        "`else` stands on a line of its own",
        "else",
    ),
    Rule(
        FLOW,
        "`break` and `continue` are about the innermost loop",
        "for i in range(4) {\n  for j in range(4) {\n    if j == 3 { break }\n"
        "    if j == i { continue }\n    Y[i * 4 + j] = 1\n  }\n}",
        first(*(float(j != 3 and i != j) for i in range(4) for j in range(4))),
        "if n > 0 { break }",
        "`break` stands outside of a loop",
        "break",
    ),
    Rule(
        FLOW,
        "`return` leaves the kernel, without a value",
        "let i = ctx.thread\nwhile true {\n  for j in range(10) { if j == i { return } }\n"
        "  break\n}\nY[i] = 1",
        THREAD >= 10,
        "return 3",
        "a kernel returns no value",
        "3",
    ),
    Rule(
        FLOW,
        "a range counts in integers of any type",
        "var s: f32 = 0\nfor i in range(u8(250), 255) { s += f32(i) }\n"
        "for i in range(u64(9223372036854775806), 9223372036854775811, 2) { s += 1 }\n"
        "for i in range(i64(2), -3, -2) { s += f32(i) }\nfor i in range(n, n) { s = 0 }\nY[0] = s",
        first(sum(range(250, 255)) + 3),
        "for i in range(0.5) { }",
        "a range counts in integers, but this is a float literal",
        "0.5",
    ),
    Rule(
        FLOW,
        "a step is not 0",
        "for i in range(8, 0, -n) { Y[i] = 1 }",
        first(0, 0, 1, 0, 0, 1, 0, 0, 1),
        "for i in range(0, 8, 0) { }",
        "the step of a range is not 0",
        "0",
    ),
    Rule(
        FLOW,
        "the variable of a loop is not assigned",
        "for i in range(3) {\n  var j = i\n  j += 10\n  Y[j] = 1\n}",
        first(*[0] * 10, 1, 1, 1),
        "for i in range(8) { i = 3 }",
        "`i` is the variable of a loop and cannot be assigned to",
        "i",
    ),
    Rule(
        FLOW,
        "a loop is unrolled whole or a number of times",
        "for<unroll> i in range(5) { if i == 3 { continue }; Y[i] = 1 }\n"
        "for<unroll 4> i in range(10, 10 + n * 3) { if i == 17 { break }; Y[i] = 2 }",
        first(1, 1, 1, 0, 1, 0, 0, 0, 0, 0, *[2] * 7),
        "for<unroll 0> i in range(8) { }",
        "a loop is unrolled at least 1 time, not 0",
        "<unroll 0>",
    ),
    Rule(
        TUNING,
        "`@autotune` lists values",
        """
@autotune(A in [4, 64], B in [3], C in [1, 7, 2])
kernel k(Y: tensor<f32>[64]) { Y[:] = full(f32(A * 100 + B * 10 + C), 64) }
""",
        431,
        "@autotune(B = 3)\nkernel k(X: tensor<f32>[N]) { }",
        "`@autotune` lists the values of a constant",
        "B = 3",
    ),
    Rule(
        TUNING,
        "two values are bounds, the lower first",
        """
@autotune(B in [8, 64])
kernel k(X: tensor<f32>[64], Y: tensor<f32>[64]) { Y[0 :+ B] = X[8 :+ B] }
""",
        first(*X[8:16]),
        "@autotune(B in [64, 16])\nkernel k(X: tensor<f32>[N]) { }",
        "two values are bounds, of which the lower comes first, not 64",
        "B in [64, 16]",
    ),
    Rule(
        TUNING,
        "the constants meet what `@require` says",
        """
@autotune(B in [8, 64])
@require(B % 8 == 0 && B <= 32)
kernel k(Y: tensor<f32>[64]) { Y[:] = B }
""",
        8,
        "@autotune(B in [64, 128])\n@require(B > 64)\nkernel k(X: tensor<f32>[N]) { }",
        "the constants B = 64 do not meet this requirement",
        "B > 64",
    ),
    Rule(
        TUNING,
        "`@require` is about constants",
        "@autotune(B in [2, 4])\n@require(B < 3)\nkernel k(Y: tensor<f32>[64]) { Y[:] = 1 }",
        1,
        "@require(N > 64)\nkernel k(X: tensor<f32>[N]) { }",
        "`@require` is about compile-time constants alone",
        "N > 64",
    ),
    Rule(
        ATTRIBUTES,
        "an attribute is one of the table",
        "@fast_math\nkernel k(X: tensor<f32>[64], Y: tensor<f32>[64]) { Y[:] = X[:] + X[:] }",
        2 * X,
        "@fast_maths\nkernel k(X: tensor<f32>[N]) { }",
        "there is no attribute `@fast_maths`",
        "fast_maths",
    ),
    Rule(
        ATTRIBUTES,
        "most attributes stand once",
        "@launch(96, 2, 64) @aligned(N = 4) @aligned(M = 4)\n"
        "kernel k(W: tensor<f32>[M, N], Y: tensor<f32>[64]) { Y[:] = f32(ctx.threads) }",
        96,
        "@launch(64) @launch(32)\nkernel k(X: tensor<f32>[N]) { }",
        "`@launch` is given twice",
        "@launch(32)",
    ),
    Rule(
        ATTRIBUTES,
        "a CTA has 1 to 1024 threads",
        "@launch(1000)\nkernel k(Y: tensor<f32>[64]) { Y[:] = f32(count<over ctx.thread>(true)) }",
        1000,
        "@launch(2048)\nkernel k(X: tensor<f32>[N]) { }",
        "the number of threads is 1 to 1024, not 2048",
        "2048",
    ),
    Rule(
        ATTRIBUTES,
        "a grid has three axes",
        """
@grid(x = 1, y = ceildiv(N, 16), z = min(M, 1))
kernel k(W: tensor<f32>[M, N], Y: tensor<f32>[64]) { Y[:] = f32(ctx.blocks.y + ctx.blocks.z) }
""",
        2,
        "@grid(w = 3)\nkernel k(X: tensor<f32>[N]) { }",
        "a grid has the axes x, y and z, not `w`",
        "w",
    ),
    Rule(
        ATTRIBUTES,
        "a grid is computed from extents and constants",
        "@grid(x = ceildiv(N, 64))\nkernel k(X: tensor<f32>[64], W: tensor<f32>[M, N], "
        "Y: tensor<f32>[64]) { Y[:] = X[:] }",
        X,
        "@grid(x = n)\nkernel k(X: tensor<f32>[N], n: i32) { }",
        "`n` is neither an extent nor an `@autotune` constant",
        "n",
    ),
    Rule(
        ATTRIBUTES,
        "a pipeline has at least one stage",
        """
@pipeline(3)
kernel k(W: tensor<f32>[M, N], Y: tensor<f32>[64]) {
  var t = full(0.0, 4, 4)
  for j in range(0, N, 4) { t += dot(W[0 :+ 4, j :+ 4], W[0 :+ 4, j :+ 4]) }
  Y[0 :+ 16] = flat(t)
}
""",
        np.r_[(_SQUARES @ _SQUARES).sum(axis=0).ravel(), np.zeros(48)],
        "@pipeline(0)\nkernel k(X: tensor<f32>[N]) { }",
        "the number of stages is at least 1, not 0",
        "0",
    ),
    Rule(
        ATTRIBUTES,
        "tensor cores have some forms",
        """
@tensorcore(f16)
kernel k(W: tensor<f32>[M, N], Y: tensor<f32>[64]) {
  Y[0 :+ 16] = flat(dot_t(W[0 :+ 4, 0 :+ 16], W[0 :+ 4, 0 :+ 16]))
}
""",
        np.r_[(W @ W.T).ravel(), np.zeros(48)],
        "@tensorcore(fp16)\nkernel k(X: tensor<f32>[N]) { }",
        "`@tensorcore` has no such form",
        "fp16",
    ),
    Rule(
        ATTRIBUTES,
        "`@dynshared`, `@persistent`, `@registers`, `@swizzle` and `@fast_math` take no arguments",
        """
@dynshared @persistent @registers @swizzle
@launch(64)
kernel k(Y: tensor<f32>[64]) {
  var t = full(1.0, 64)
  t[ctx.thread] = f32(ctx.thread)
  Y[:] = t
}
""",
        THREAD,
        "@dynshared(4)\nkernel k(X: tensor<f32>[N]) { }",
        "`@dynshared` takes no arguments, not 1",
        "4",
    ),
)
