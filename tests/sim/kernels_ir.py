"""Lowered IR of small kernels, written by hand: inputs of the simulator's tests and benchmarks."""


def module(body: str, arch: str = "gfx942", lds: str = "") -> str:
    """Return a module with one gpu.module."""
    return f'module attributes {{gpu.container_module, fly.arch = "{arch}"}} {{\n gpu.module @kernels {{\n{lds}\n{body}\n }}\n}}\n'


def lds_array(name: str, nbytes: int) -> str:
    """Return a static LDS array."""
    return f"llvm.mlir.global internal @{name}() {{addr_space = 3 : i32, alignment = 16 : i64}} : !llvm.array<{nbytes} x i8>"


def kernel(name: str, params: str, body: str, block: int | None = None) -> str:
    """Return a gpu.func; `%tid`, `%bid`, `%i` (global thread number) are defined."""
    names = ", ".join(f'"{p.split(":")[0].strip()[1:]}"' for p in params.split(", "))
    known = f"known_block_size = array<i32: {block}, 1, 1>, " if block else ""
    return f"""
    gpu.func @{name}({params}) kernel attributes {{{known}fly.params = [{names}]}} {{
      %tidx = gpu.thread_id x
      %tid = arith.index_cast %tidx : index to i32
      %bidx = gpu.block_id x
      %bid = arith.index_cast %bidx : index to i32
      %bdimx = gpu.block_dim x
      %bdim = arith.index_cast %bdimx : index to i32
      %i_base = arith.muli %bid, %bdim : i32
      %i = arith.addi %i_base, %tid : i32
      {body}
      gpu.return
    }}"""


VEC_ADD = module(
    kernel(
        "vec_add",
        "%A: !llvm.ptr<1>, %B: !llvm.ptr<1>, %C: !llvm.ptr<1>, %n: i32",
        """
      %ok = arith.cmpi slt, %i, %n : i32
      scf.if %ok {
        %pa = llvm.getelementptr %A[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %pb = llvm.getelementptr %B[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %pc = llvm.getelementptr %C[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
        %x = llvm.load %pa {alignment = 4 : i64} : !llvm.ptr<1> -> f32
        %y = llvm.load %pb {alignment = 4 : i64} : !llvm.ptr<1> -> f32
        %z = arith.addf %x, %y : f32
        llvm.store %z, %pc {alignment = 4 : i64} : f32, !llvm.ptr<1>
      }""",
    )
)


def block_reduce(value: str, op: str, lds: str, tag: str, wave: int, waves: int, barrier_first: bool) -> str:
    """Return IR that reduces `value` over the workgroup through shuffles and LDS; the result is `%{tag}`."""
    lines, cur, k, step = [], value, wave // 2, 0
    lines.append(f"%{tag}_w = arith.constant {wave} : i32")
    while k:
        lines.append(f"%{tag}_o{step} = arith.constant {k} : i32")
        lines.append(f"%{tag}_s{step}, %{tag}_p{step} = gpu.shuffle xor {cur}, %{tag}_o{step}, %{tag}_w : f32")
        lines.append(f"%{tag}_r{step} = arith.{op} {cur}, %{tag}_s{step} : f32")
        cur, k, step = f"%{tag}_r{step}", k // 2, step + 1
    lines.append("gpu.barrier" if barrier_first else "")
    lines.append(f"""
      %{tag}_lane = arith.remui %tid, %{tag}_w : i32
      %{tag}_wave = arith.divui %tid, %{tag}_w : i32
      %{tag}_zero = arith.constant 0 : i32
      %{tag}_is0 = arith.cmpi eq, %{tag}_lane, %{tag}_zero : i32
      %{tag}_base = llvm.mlir.addressof @{lds} : !llvm.ptr<3>
      scf.if %{tag}_is0 {{
        %{tag}_slot = llvm.getelementptr %{tag}_base[%{tag}_wave] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
        llvm.store {cur}, %{tag}_slot {{alignment = 4 : i64}} : f32, !llvm.ptr<3> loc("softmax.py":41:9)
      }}
      gpu.barrier""")
    cur = None
    for w in range(waves):
        lines.append(f"%{tag}_q{w} = llvm.getelementptr %{tag}_base[{4 * w}] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8")
        lines.append(
            f'%{tag}_l{w} = llvm.load %{tag}_q{w} {{alignment = 4 : i64}} : !llvm.ptr<3> -> f32 loc("softmax.py":{45 + w}:9)'
        )
        if cur is None:
            cur = f"%{tag}_l{w}"
        else:
            lines.append(f"%{tag}_m{w} = arith.{op} {cur}, %{tag}_l{w} : f32")
            cur = f"%{tag}_m{w}"
    lines.append(f"%{tag} = arith.addf {cur}, %zero_f : f32")
    return "\n".join(lines)


def softmax(
    cols: int = 1024, block: int = 256, wave: int = 64, second_barrier: bool = True, arch: str = "gfx942"
) -> str:
    """Row softmax, 4 elements per thread, one row per workgroup; without `second_barrier` the reductions race."""
    assert cols == 4 * block
    body = f"""
      %zero_f = arith.constant 0.0 : f32
      %zero = arith.constant 0 : i32
      %zero16 = arith.constant 0 : i16
      %row_bytes = arith.constant {cols * 4} : i64
      %flags = arith.constant 159744 : i32
      %bid64 = arith.extsi %bid : i32 to i64
      %skip = arith.muli %bid64, %row_bytes : i64
      %prow = llvm.getelementptr %A[%skip] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
      %pout = llvm.getelementptr %B[%skip] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
      %ra = rocdl.make.buffer.rsrc %prow, %zero16, %row_bytes, %flags : !llvm.ptr<1> to !llvm.ptr<8>
      %rb = rocdl.make.buffer.rsrc %pout, %zero16, %row_bytes, %flags : !llvm.ptr<1> to !llvm.ptr<8>
      %c16 = arith.constant 16 : i32
      %off = arith.muli %tid, %c16 : i32
      %x = rocdl.raw.ptr.buffer.load %ra, %off, %zero, 0 : vector<4xf32>
      %lmax = vector.reduction <maxnumf>, %x : vector<4xf32> into f32
      {block_reduce("%lmax", "maxnumf", "red", "mx", wave, block // wave, False)}
      %vm = vector.broadcast %mx : f32 to vector<4xf32>
      %d = arith.subf %x, %vm : vector<4xf32>
      %log2e = arith.constant dense<1.44269502> : vector<4xf32>
      %s = arith.mulf %d, %log2e : vector<4xf32>
      %e = math.exp2 %s : vector<4xf32>
      %lsum = vector.reduction <add>, %e : vector<4xf32> into f32
      {block_reduce("%lsum", "addf", "red", "sm", wave, block // wave, second_barrier)}
      %one = arith.constant 1.0 : f32
      %inv = arith.divf %one, %sm : f32
      %vi = vector.broadcast %inv : f32 to vector<4xf32>
      %y = arith.mulf %e, %vi : vector<4xf32>
      rocdl.raw.ptr.buffer.store %y, %rb, %off, %zero, 0 : vector<4xf32>"""
    return module(kernel("softmax", "%A: !llvm.ptr<1>, %B: !llvm.ptr<1>", body, block), arch, lds_array("red", 64))


MLIR_TYPES = {"int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "float16": "f16", "float32": "f32", "float64": "f64",
              "bfloat16": "bf16", "bool": "i1"}  # fmt: skip


def elementwise(ops: str, inputs: list[str], output: str, arch: str = "gfx942") -> str:
    """Return kernel `k(in..., out, n)`: `ops` computes `%r` (of type `output`) from `%x0, %x1, ...`, one element per thread."""
    pointers = [f"%P{i}: !llvm.ptr<1>" for i in range(len(inputs) + 1)]
    lines = ["%ok = arith.cmpi slt, %i, %count : i32", "scf.if %ok {"]
    for i, t in enumerate(inputs):
        lines.append(f"%q{i} = llvm.getelementptr %P{i}[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, {t}")
        lines.append(f"%x{i} = llvm.load %q{i} {{alignment = 1 : i64}} : !llvm.ptr<1> -> {t}")
    out = len(inputs)
    lines.append(ops)
    lines.append(f"%q{out} = llvm.getelementptr %P{out}[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, {output}")
    lines.append(f"llvm.store %r, %q{out} {{alignment = 1 : i64}} : {output}, !llvm.ptr<1>")
    lines.append("}")
    return module(kernel("k", ", ".join([*pointers, "%count: i32"]), "\n".join(lines)), arch)


class Emit:
    """Lines of IR with fresh names and shared constants."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count = 0
        self.consts: dict[tuple[int, str], str] = {}

    def op(self, text: str) -> str:
        """Append an op and return the name of its result."""
        self.count += 1
        name = f"%e{self.count}"
        self.lines.append(f"{name} = {text}")
        return name

    def const(self, value: int, elem: str = "i32") -> str:
        """Return a constant; those made inside a loop are not shared."""
        return self.op(f"arith.constant {value} : {elem}")

    def bin(self, name: str, a: str, b: str | int) -> str:
        """Return an i32 operation."""
        return self.op(f"arith.{name} {a}, {b if isinstance(b, str) else self.const(b)} : i32")

    def gep(self, base: str, index: str, elem: str, space: int) -> str:
        """Return an element address."""
        return self.op(f"llvm.getelementptr {base}[{index}] : (!llvm.ptr<{space}>, i32) -> !llvm.ptr<{space}>, {elem}")

    def load(self, ptr: str, type_: str, space: int, align: int, loc: str = "") -> str:
        """Return a loaded value."""
        return self.op(f"llvm.load {ptr} {{alignment = {align} : i64}} : !llvm.ptr<{space}> -> {type_} {loc}")

    def store(self, value: str, ptr: str, type_: str, space: int, align: int, loc: str = "") -> None:
        """Append a store."""
        self.lines.append(
            f"llvm.store {value}, {ptr} {{alignment = {align} : i64}} : {type_}, !llvm.ptr<{space}> {loc}"
        )


GEMM_KINDS = {
    "f16": ("gfx942", "f16", "rocdl.mfma.f32.16x16x16f16", 16, 2, "vector<4xf16>"),
    "fp8": ("gfx950", "i8", "rocdl.mfma.f32.16x16x32.fp8.fp8", 32, 1, "i64"),
}


def gemm(
    m: int, n: int, k: int, kind: str = "f16", bm: int = 128, bn: int = 128, bk: int = 32, barriers: bool = True
) -> str:
    """C[m, n] = A[m, k] * B[n, k]^T in f32: 4 waves (2 x 2), tiles through LDS, one vector of accumulators carried by the loop."""
    arch, elem, op, mk, size, reg = GEMM_KINDS[kind]
    e = Emit()
    per_load = 16 // size
    lane, wave = e.bin("remui", "%tid", 64), e.bin("divui", "%tid", 64)
    wm, wn = e.bin("divui", wave, 2), e.bin("remui", wave, 2)
    r16, g4 = e.bin("remui", lane, 16), e.bin("divui", lane, 16)
    nbn = n // bn
    bm0, bn0 = e.bin("muli", e.bin("divui", "%bid", nbn), bm), e.bin("muli", e.bin("remui", "%bid", nbn), bn)
    tm, tn = bm // 32, bn // 32
    acc_type = f"vector<{tm * tn * 4}xf32>"
    zero = e.op(f"arith.constant dense<0.0> : {acc_type}")
    lds_a, lds_b = (e.op(f"llvm.mlir.addressof @{s} : !llvm.ptr<3>") for s in ("tile_a", "tile_b"))
    lo, hi, step = e.const(0), e.const(k), e.const(bk)
    head, e.lines = e.lines, []
    for lds, ptr, rows, row0 in ((lds_a, "%A", bm, bm0), (lds_b, "%B", bn, bn0)):
        chunks_per_row = bk // per_load
        for i in range(rows * chunks_per_row // 256):
            c = e.bin("addi", "%tid", 256 * i)
            row, col = e.bin("divui", c, chunks_per_row), e.bin("muli", e.bin("remui", c, chunks_per_row), per_load)
            src = e.bin("addi", e.bin("muli", e.bin("addi", row, row0), k), e.bin("addi", col, "%kk"))
            v = e.load(e.gep(ptr, src, elem, 1), f"vector<{per_load}x{elem}>", 1, 16)
            dst = e.bin("addi", e.bin("muli", row, bk), col)
            e.store(v, e.gep(lds, dst, elem, 3), f"vector<{per_load}x{elem}>", 3, 16)
    e.lines.append("gpu.barrier")
    acc = "%acc"
    width = mk // 4
    for ks in range(bk // mk):
        frags = {}
        for name, lds, count, w in (("a", lds_a, tm, wm), ("b", lds_b, tn, wn)):
            for i in range(count):
                row = e.bin("addi", e.bin("addi", e.bin("muli", w, count * 16), 16 * i), r16)
                off = e.bin("addi", e.bin("addi", e.bin("muli", row, bk), e.bin("muli", g4, width)), ks * mk)
                frags[name, i] = e.load(e.gep(lds, off, elem, 3), reg, 3, 8)
        for i in range(tm):
            for j in range(tn):
                at = (i * tn + j) * 4
                c = e.op(
                    f"vector.extract_strided_slice {acc} {{offsets = [{at}], sizes = [4], strides = [1]}} : {acc_type} to vector<4xf32>"
                )
                d = e.op(
                    f"{op} {frags['a', i]}, {frags['b', j]}, {c}, 0, 0, none : ({reg}, {reg}, vector<4xf32>) -> vector<4xf32>"
                )
                acc = e.op(
                    f"vector.insert_strided_slice {d}, {acc} {{offsets = [{at}], strides = [1]}} : vector<4xf32> into {acc_type}"
                )
    if barriers:
        e.lines.append("gpu.barrier")
    body, e.lines = e.lines, []
    for i in range(tm):
        for j in range(tn):
            for v in range(4):
                x = e.op(f"vector.extract %out[{(i * tn + j) * 4 + v}] : f32 from {acc_type}")
                row = e.bin(
                    "addi",
                    e.bin("addi", e.bin("addi", e.bin("muli", wm, tm * 16), 16 * i + v), e.bin("muli", g4, 4)),
                    bm0,
                )
                col = e.bin("addi", e.bin("addi", e.bin("addi", e.bin("muli", wn, tn * 16), 16 * j), r16), bn0)
                e.store(x, e.gep("%C", e.bin("addi", e.bin("muli", row, n), col), "f32", 1), "f32", 1, 4)
    tail = e.lines
    loop = [f"%out = scf.for %kk = {lo} to {hi} step {step} iter_args(%acc = {zero}) -> ({acc_type}) : i32 {{", *body,
            f"scf.yield {acc} : {acc_type}", "}"]  # fmt: skip
    text = "\n".join([*head, *loop, *tail])
    lds = lds_array("tile_a", bm * bk * size) + "\n" + lds_array("tile_b", bn * bk * size)
    return module(kernel("gemm", "%A: !llvm.ptr<1>, %B: !llvm.ptr<1>, %C: !llvm.ptr<1>", text, 256), arch, lds)
