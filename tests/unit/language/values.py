"""Rules of names, functions, parameters and types."""

from __future__ import annotations

import numpy as np

from tests.unit.language.rule import N, Rule, X, first

NAMES = "Names and statements"
FUNCTIONS = "Functions"
PARAMETERS = "Parameters and extents"
TYPES = "Types"

RULES = (
    Rule(
        NAMES,
        "a `let` is bound once, a `var` is assigned again",
        "let a = 2\nvar b = a\nb = b + 1\nY[:] = full(f32(b), 64)",
        3,
        "let a = 2\na = 3",
        "`a` is a `let` and cannot be assigned to",
        "a",
    ),
    Rule(
        NAMES,
        "only a tile may start without a value",
        "var t: tile<f32>[64]\nt[ctx.thread] = 7\nY[:] = t",
        7,
        "var a: f32",
        "`a` has no initial value",
        "var a: f32",
    ),
    Rule(
        NAMES,
        "a name is known to the end of its block, where others may hide it",
        "var s: f32 = 0\nlet a = 1\nif n > 0 {\n  let a = 10\n  s += f32(a)\n}\n"
        "Y[:] = full(s + f32(a), 64)",
        11,
        "if n > 0 {\n  let a = 1\n}\nY[0] = f32(a)",
        "`a` is not defined here",
        "a",
    ),
    Rule(
        NAMES,
        "a block declares a name once",
        "let a = 1\nif n > 0 { let a = 2 }\nY[:] = full(f32(a), 64)",
        1,
        "let a = 1\nlet a = 2",
        "`a` is already declared in this block",
        "a",
    ),
    Rule(
        NAMES,
        "a statement ends at its line or `;`, but not inside brackets",
        "let a = (1 +\n  2); let b = max(a,\n  5)\nY[:] = full(f32(b), 64) // five",
        5,
        "let a = 1 let b = 2",
        "expected the end of the statement, found `let`",
        "let",
    ),
    Rule(
        NAMES,
        "how numbers and constants are written",
        "Y[0] = f32(1_000 + 0xff)\nY[1] = 1.5e-1\nif !false && true { Y[2] = min(inf, 3.0) }\n"
        "if isnan(nan) { Y[3] = 4 }",
        first(1255, 0.15, 3, 4),
        "let a = 12ab",
        "a number cannot end in `ab`",
        "12ab",
    ),
    Rule(
        NAMES,
        "the names of built-ins may be taken, reserved words may not",
        "let min = 3\nlet range = 4\nY[:] = full(f32(min * range), 64)",
        12,
        "let for = 3",
        "`for` is a reserved word and cannot name a variable",
        "for",
    ),
    Rule(
        NAMES,
        "a compound assignment keeps the type of its variable",
        "var s: i32 = 7\ns += 3\ns *= 5\ns -= 1\ns /= 2\ns %= 13\ns |= 8\ns &= 12\ns ^= 5\n"
        "s <<= 3\ns >>= 1\nY[:] = full(f32(s), 64)",
        (((((7 + 3) * 5 - 1) // 2 % 13) | 8) & 12 ^ 5) << 3 >> 1,
        "var s: i32 = 0\ns += 1.5",
        "`s + ...` is f32, which `s` cannot hold: it is i32",
        "s += 1.5",
    ),
    Rule(
        NAMES,
        "a value is used",
        "Y[:] = X[:]",
        X,
        "X[0] + 1",
        "this value is not used",
        "X[0] + 1",
    ),
    Rule(
        FUNCTIONS,
        "a function is called with as many arguments as it has parameters",
        """
fn scaled(t: tile<f32>[R], by: f32) -> tile<f32>[R] { return t * by + f32(R) }
kernel k(X: tensor<f32>[64], Y: tensor<f32>[64]) { Y[:] = scaled(X[:], 2) }
""",
        X * 2 + 64,
        """
fn f(x: f32) -> f32 { return x }
kernel k(Y: tensor<f32>[64]) { Y[0] = f(1, 2) }
""",
        "`f` takes 1 argument, not 2",
        "f(1, 2)",
    ),
    Rule(
        FUNCTIONS,
        "arguments have the types of the parameters, which may be tensors",
        """
fn get(A: tensor<f32>[K], i: index) -> f32 { return A[K - 1 - i] }
@launch(64)
kernel k(X: tensor<f32>[64], Y: tensor<f32>[64]) { Y[ctx.thread] = get(X, ctx.thread) }
""",
        X[::-1],
        """
fn f(x: i32) -> i32 { return x }
kernel k(X: tensor<f32>[64], Y: tensor<f32>[64]) { Y[0] = f32(f(X[0])) }
""",
        "`x` is i32, but this value is f32",
        "X[0]",
    ),
    Rule(
        FUNCTIONS,
        "a function may return anywhere, and returns on every way",
        """
fn f(x: index) -> f32 {
  for i in range(10) {
    if i * i > x { return f32(i) }
  }
  return -1.0
}
@launch(64)
kernel k(Y: tensor<f32>[64]) { Y[ctx.thread] = f(ctx.thread) }
""",
        [next((i for i in range(10) if i * i > x), -1) for x in range(64)],
        """
fn f(x: f32) -> f32 { if x > 0 { return x } }
kernel k(X: tensor<f32>[64], Y: tensor<f32>[64]) { Y[0] = f(X[0]) }
""",
        "`f` may end without a `return`",
        "f",
    ),
    Rule(
        FUNCTIONS,
        "a function that declares no result is a statement",
        """
fn put(A: tensor<f32>[K], x: f32) {
  if x < 0 { return }
  A[3] = x
}
kernel k(Y: tensor<f32>[64]) {
  put(Y, 5)
  put(Y, -1)
}
""",
        first(0, 0, 0, 5),
        """
fn f(x: f32) { let y = x }
kernel k(Y: tensor<f32>[64]) { Y[0] = f(1) }
""",
        "`f` returns nothing that could be used here",
        "f(1)",
    ),
    Rule(
        FUNCTIONS,
        "a function does not call itself",
        """
fn once(x: f32) -> f32 { return x + 1 }
fn twice(x: f32) -> f32 { return once(once(x)) }
kernel k(Y: tensor<f32>[64]) { Y[:] = full(twice(3), 64) }
""",
        5,
        """
fn f(x: f32) -> f32 { return f(x) }
kernel k(Y: tensor<f32>[64]) { Y[0] = f(1) }
""",
        "`f` calls itself",
        "f(x)",
    ),
    Rule(
        FUNCTIONS,
        "a kernel is started by a launch alone",
        """
fn both(A: tensor<f32>[K]) { A[0] = 2 }
kernel k(Y: tensor<f32>[64]) { both(Y) }
""",
        first(2),
        """
kernel a(Y: tensor<f32>[64]) { Y[0] = 1 }
kernel k(Y: tensor<f32>[64]) { a(Y) }
""",
        "`a` is a kernel, which only a launch can start",
        "a(Y)",
    ),
    Rule(
        PARAMETERS,
        "a tensor has 1 to 5 axes",
        """
kernel k(A: tensor<f32>[2, 2, 2, 2, 4], Y: tensor<f32>[64]) {
  A[:, :, :, :, :] = f32(iota<4>(2, 2, 2, 2, 4) + 10 * iota<0>(2, 2, 2, 2, 4))
  Y[:] = flat(A[:, :, :, :, :])
}
""",
        np.add.outer(10 * (np.arange(16) // 8), np.arange(4)).ravel(),
        "kernel k(A: tensor<f32>[A, B, C, D, E, F]) { }",
        "a tensor has at most 5 axes, this one 6",
        "tensor<f32>[A, B, C, D, E, F]",
    ),
    Rule(
        PARAMETERS,
        "extents are values, and `extent` is any tensor's own",
        "Y[0] = f32(M)\nY[1] = f32(N)\nY[2] = f32(extent(W, 1))\nY[3] = f32(extent(Y, 0))",
        first(4, 16, 16, 64),
        "Y[0] = f32(extent(X, 1))",
        "`X` has axes 0 to 0, and `extent` takes one as a constant",
        "1",
    ),
    Rule(
        PARAMETERS,
        "parameters have different names",
        "kernel k(n: i32, Y: tensor<f32>[64]) { Y[:] = full(f32(n), 64) }",
        N,
        "kernel k(x: f32, x: i32) { }",
        "`x` is already declared in this block",
        "x",
    ),
    Rule(
        PARAMETERS,
        "a tensor by itself is no value",
        "Y[:] = X[:]",
        X,
        "Y[0] = X",
        "the tensor `X` is no value by itself",
        "X",
    ),
    Rule(
        TYPES,
        "a type has one of the names of the table",
        "var a: f64 = 1\nvar b: u16 = 2\nvar c: bool = n > 0\nlet d: bf16 = 3\n"
        "let e = i16(b) * 2 + i16(f8e5m2(d))\nif c { Y[0] = f32(a + f64(e)) }",
        first(8),
        "kernel k(x: float) { }",
        "there is no type `float`",
        "float",
    ),
    Rule(
        TYPES,
        "a literal takes the type of what it meets, which must hold it",
        "let h = f16(X[:]) * 0.5\nlet a: u8 = 200\nY[:] = f32(h) + f32(a + 100)",
        X / 2 + 44,
        "let a: i8 = 200",
        "200 does not fit i8, which holds -128 to 127",
        "200",
    ),
    Rule(
        TYPES,
        "signed and unsigned integers of one width do not mix",
        "let a: u8 = 255\nY[:] = full(f32(i32(a) + n) + f32(i8(1) + u16(2)), 64)",
        261,
        "Y[0] = f32(u32(n) + n)",
        "`+`: u32 and i32 do not mix: one is signed, the other is not",
        "u32(n) + n",
    ),
    Rule(
        TYPES,
        "a value becomes narrower by a conversion alone",
        "let h: f16 = f16(X[1])\nlet d: f64 = h\nvar w: i64 = n\nw += i8(1)\n"
        "Y[:] = full(f32(d) + f32(w), 64)",
        4.5,
        "var h: f16 = 1\nh = X[0]",
        "`h` is f16, but this value is f32",
        "X[0]",
    ),
    Rule(
        TYPES,
        "float to integer truncates and saturates, NaN gives 0",
        "Y[0] = f32(i8(300.0 * X[2]))\nY[1] = f32(i32(-2.75 * X[2]))\nY[2] = f32(u16(-X[2]))\n"
        "Y[3] = f32(i32(nan * X[2]))",
        first(127, -2, 0, 0),
        "let a: i32 = X[0]",
        "`a` is i32, but this value is f32",
        "X[0]",
    ),
    Rule(
        TYPES,
        "integer division truncates toward zero; arithmetic wraps at its width",
        "Y[0] = f32(-7 / n)\nY[1] = f32(-7 % n)\nY[2] = f32(i8(n) * i8(100))\n"
        "Y[3] = f32(i32(-16) >> n)\nY[4] = X[15] % 2",
        first(-2, -1, 300 - 256, -2, 1.5),
        "Y[0] = f32(n / 0)",
        "division by zero",
        "0",
    ),
    Rule(
        TYPES,
        "bits are those of integers, and are shifted by less than the width",
        "Y[0] = f32(n & 2 | 8 ^ 1)\nY[1] = f32(n << 30 >> 30)\nY[2] = f32(~n)",
        first(3 & 2 | 8 ^ 1, -1, ~3),
        "Y[0] = f32(n << 40)",
        "a shift by 40 is outside 0 to 31",
        "40",
    ),
    Rule(
        TYPES,
        "comparisons do not chain",
        "if 0 < n && n < 5 { Y[0] = 1 }",
        first(1),
        "if 0 < n < 5 { Y[0] = 1 }",
        "comparisons do not chain",
        "0 < n < 5",
    ),
    Rule(
        TYPES,
        "how tight the operators bind",
        "Y[:] = full(f32(1 | 2 ^ 3 & 4 << 1 + 2 * 3 % 4 - -1), 64)",
        1 | 2 ^ 3 & 4 << 1 + 2 * 3 % 4 - -1,
        "Y[0] = f32(!n)",
        "`!` takes a bool, not i32",
        "!n",
    ),
    Rule(
        TYPES,
        "bools are no numbers",
        "Y[:] = full(f32(i32(n > 1) + 1), 64)",
        2,
        "Y[0] = f32((n > 1) + 1)",
        "`+`: bool and an integer literal do not mix",
        "(n > 1) + 1",
    ),
    Rule(
        TYPES,
        "floats of 8 bits are moved and converted, not computed with",
        "let t = f8e4m3(f32(iota(64) % 16))\nY[:] = f32(flat(transpose(reshape(t, 8, 8))))",
        (np.arange(64) % 16).reshape(8, 8).T.ravel(),
        "kernel k(A: tensor<f8e4m3>[64], Y: tensor<f8e4m3>[64]) { Y[:] = A[:] + A[:] }",
        "`+`: f8e4m3 is a storage format without arithmetic",
        "A[:] + A[:]",
    ),
)
