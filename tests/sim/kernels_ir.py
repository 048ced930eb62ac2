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
        lines.append(f'%{tag}_l{w} = llvm.load %{tag}_q{w} {{alignment = 4 : i64}} : !llvm.ptr<3> -> f32 loc("softmax.py":{45 + w}:9)')
        if cur is None:
            cur = f"%{tag}_l{w}"
        else:
            lines.append(f"%{tag}_m{w} = arith.{op} {cur}, %{tag}_l{w} : f32")
            cur = f"%{tag}_m{w}"
    lines.append(f"%{tag} = arith.addf {cur}, %zero_f : f32")
    return "\n".join(lines)


def softmax(cols: int = 1024, block: int = 256, wave: int = 64, second_barrier: bool = True, arch: str = "gfx942") -> str:
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
