"""Export to C: an object file with the code objects and the host program, and a header. Both need nothing but the HIP
library.

The host program is the generated Python text (`host_program`), of which every form has a counterpart in C: integers
are `int64_t`, wrapped to their width after each operation, floats are `double`.
"""

from __future__ import annotations

import ast
import json
import keyword
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flydsl.diag import ExportName, NotExportable
from flydsl.targets.base import KernelInfo

Codes = dict[str, tuple[bytes, dict[str, KernelInfo]]]  # by chip: code object, facts of its kernels
_C_NUMBERS = {
    "i1": "bool",
    "i8": "int8_t",
    "i16": "int16_t",
    "i32": "int32_t",
    "i64": "int64_t",
    "f32": "float",
    "f64": "double",
}
_RESERVED = frozenset(
    """auto break case char const continue default do double else enum extern float for goto if inline int long
    register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while class
    new delete template this operator private public protected virtual try catch throw namespace using main""".split()
)
SCHEMA_VERSION = 1
PRELUDE = r"""
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
extern int hipInit(unsigned);
extern int hipGetDevice(int *);
extern int hipSetDevice(int);
extern int hipModuleLoadData(void **, const void *);
extern int hipModuleUnload(void *);
extern int hipModuleGetFunction(void **, void *, const char *);
extern int hipFuncSetAttribute(const void *, int, int);
typedef unsigned U;
extern int hipModuleLaunchKernel(void *, U, U, U, U, U, U, U, void *, void **, void **);
/* HIP_LAUNCH_CONFIG and hipLaunchAttribute; attribute 4 is the cluster size. Absent before HIP 6.5. */
typedef struct { int id; int pad; union { U cluster[3]; char bytes[64]; } value; } launch_attribute;
typedef struct { U grid[3], block[3], lds; void *stream; launch_attribute *attributes; U count; } launch_config;
extern int hipDrvLaunchKernelEx(const launch_config *, void *, void **, void **) __attribute__((weak));
static inline int launch_(void *function, const U *grid, const U *block, const U *cluster, U lds, void *stream, void **parameters) {
  if (cluster[0] <= 1 && cluster[1] <= 1 && cluster[2] <= 1)
    return hipModuleLaunchKernel(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], lds, stream, parameters, 0);
  if (!hipDrvLaunchKernelEx) return 801; /* hipErrorNotSupported */
  launch_attribute attribute = {4, 0, {{cluster[0], cluster[1], cluster[2]}}};
  launch_config config = {{grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, lds, stream, &attribute, 1};
  return hipDrvLaunchKernelEx(&config, function, parameters, 0);
}
#define MOST_DEVICES 64
static inline int64_t wrap_8(int64_t x) { return (int8_t)x; }
static inline int64_t wrap_1(int64_t x) { return (x & 1) ? -1 : 0; }
static inline int64_t wrap_16(int64_t x) { return (int16_t)x; }
static inline int64_t wrap_32(int64_t x) { return (int32_t)x; }
static inline int64_t wrap_64(int64_t x) { return x; }
static inline int64_t rem_(int64_t a, int64_t b) { return a % b; }
static inline int64_t div_(int64_t a, int64_t b) { return a / b; }
static inline int64_t floordiv_(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }
static inline int64_t floormod_(int64_t a, int64_t b) { return a - b * floordiv_(a, b); }
static inline int64_t ceildiv_(int64_t a, int64_t b) { return -floordiv_(-a, b); }
static inline uint16_t bf16_(double x) {
  union { float f; uint32_t u; } v; v.f = (float)x;
  return (uint16_t)(v.f != v.f ? v.u >> 16 | 0x40 : (v.u + 0x7fff + (v.u >> 16 & 1)) >> 16);
}
static inline int64_t unsigned_(int64_t x, int width) { return width >= 64 ? x : x & (((int64_t)1 << width) - 1); }
"""


def export_to_c(
    folder: str | os.PathLike, base_name: str, prefix: str, name: str, parameters: list[dict[str, Any]],
    artifacts: Sequence[Any],
) -> str:  # fmt: skip
    """Write `<base_name>.{o,h,json}` and a code object per chip; return the exported symbol.

    `artifacts`: the compiled artifacts, one per chip.
    Raises   FileNotFoundError: the folder or a C compiler is missing; ExportName; NotExportable
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"export_to_c writes into an existing folder, and {folder} is none")
    if not base_name or base_name in (".", "..") or os.path.basename(base_name) != base_name or "\\" in base_name:
        raise ExportName(name=base_name, problem="it is no plain file name")
    symbol = _symbol(prefix + name)
    if sum(p["kind"] == "stream" for p in parameters) > 1:
        raise NotExportable(problem="it has more than one stream")
    codes = {a.arch: a.code_object() for a in artifacts}
    metadata = _metadata(symbol, parameters, codes)
    header = header_text(symbol, parameters)
    source = source_text(symbol, parameters, artifacts[0].host_text, codes, metadata)
    for arch, (code, _) in codes.items():
        (folder / f"{base_name}.{arch}.hsaco").write_bytes(code)
    (folder / f"{base_name}.json").write_text(metadata + "\n")
    (folder / f"{base_name}.h").write_text(header)
    compile_object(source, folder / f"{base_name}.o")
    return symbol


def _symbol(symbol: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", symbol):
        raise ExportName(name=symbol, problem="it is no C identifier")
    if (
        symbol in _RESERVED
        or symbol.startswith("__")
        or re.match(r"_[A-Z]", symbol)
        or (keyword.iskeyword(symbol) and symbol in _RESERVED)
    ):
        raise ExportName(name=symbol, problem="C reserves it")
    return symbol


def _metadata(symbol: str, parameters: list[dict], codes: dict[str, tuple[bytes, dict[str, KernelInfo]]]) -> str:
    kernels = {
        name: {
            "registers": {"vgpr": k.vgprs, "agpr": k.agprs, "sgpr": k.sgprs},
            "lds_bytes": k.lds_bytes,
            "kernarg_bytes": k.kernarg_bytes,
        }
        for name, k in next(iter(codes.values()))[1].items()
    }
    facts = {
        "schema": SCHEMA_VERSION,
        "symbol": symbol,
        "parameters": parameters,
        "archs": list(codes),
        "kernels": kernels,
    }
    return json.dumps(facts)


def compile_object(source: str, target: Path) -> None:
    """Compile C text to an object file with `$CC`, `cc`, `clang`, `gcc`, or the ziglang wheel.

    Raises   FileNotFoundError: there is none
    """
    command = _compiler()
    flags = ["-x", "c", "-O2", "-fPIC", "-std=c11", "-c", "-o", str(target), "-"]
    done = subprocess.run([*command, *flags], input=source, capture_output=True, text=True)
    if done.returncode:
        raise NotExportable(problem=f"the C compiler refused the host program: {done.stderr.strip().splitlines()[:1]}")


def _compiler() -> list[str]:
    for name in (os.environ.get("CC"), "cc", "clang", "gcc"):
        if name and shutil.which(name.split()[0]):
            return name.split()
    from flydsl.targets.rocm.tools import _zig

    zig = _zig()
    if zig is None:
        raise FileNotFoundError("export_to_c needs a C compiler: set CC, install one, or `pip install ziglang`")
    return [zig, "cc"]


# --- header -----------------------------------------------------------------------------------------------------------


def dynamic_counts(parameter: dict[str, Any]) -> tuple[int, int]:
    """Return how many extents and strides of a tensor are passed at run time."""
    return sum(n is None for n in parameter["shape"]), sum(n is None for n in parameter["stride"])


def _stride_type(parameter: dict[str, Any]) -> str:
    return "int32_t" if parameter["stride_bits"] == 32 else "int64_t"


def c_parameters(symbol: str, parameters: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return (type, name) of the typed call's parameters; the stream is last."""
    out = []
    for p in parameters:
        if p["kind"] == "tensor":
            out.append(("void *", f"{p['name']}_data"))
            if any(dynamic_counts(p)):
                out.append((f"const {symbol}_{p['name']}_layout_t *", f"{p['name']}_layout"))
        elif p["kind"] == "pointer":
            out.append(("void *", p["name"]))
        elif p["kind"] == "number":
            if p["elem"] not in _C_NUMBERS:
                raise NotExportable(problem=f"parameter `{p['name']}` is a {p['dtype']}, which has no C type")
            kind = _C_NUMBERS[p["elem"]]
            out.append((f"u{kind}" if p["dtype"].startswith("Uint") else kind, p["name"]))
    streams = [("void *", p["name"]) for p in parameters if p["kind"] == "stream"]
    return out + streams


def header_text(symbol: str, parameters: list[dict[str, Any]]) -> str:
    """Return the C header."""
    call = c_parameters(symbol, parameters)
    typed = ", ".join(f"{t}{'' if t.endswith('*') else ' '}{n}" for t, n in call) or "void"
    values = ", ".join(f"(void *)&{n}" for _, n in call)
    names = ", ".join(n for _, n in call)
    return f"""/* {symbol}: generated by flydsl. Link {symbol}'s object file and the HIP library. */
#ifndef {symbol}_H
#define {symbol}_H
#include <stdbool.h>
#include <stdint.h>
#ifdef __cplusplus
#define {symbol}_ASSERT static_assert
extern "C" {{
#else
#define {symbol}_ASSERT _Static_assert
#endif

#define {symbol}_SCHEMA_VERSION {SCHEMA_VERSION}
#define {symbol}_NUM_ARGS {len(call)}

{"".join(_layout_struct(symbol, p) for p in parameters if p["kind"] == "tensor" and any(dynamic_counts(p)))}
/* 0: success; -1: not initialised; -2: not loaded on the current device; else HIP's error */
int32_t {symbol}(void **args);
int32_t {symbol}__module_init(void);
int32_t {symbol}__module_load(int32_t device); /* -1: the current device */
int32_t {symbol}__module_unload(void);
extern const char {symbol}__metadata[];

static inline int32_t {symbol}_call({typed}) {{
  void *args[] = {{{values or "0"}}};
  return {symbol}(args);
}}

/* Initialises and loads where that has not been done. */
static inline int32_t {symbol}_call_auto({typed}) {{
  int32_t status = {symbol}_call({names});
  if (status == -1 && (status = {symbol}__module_init()) == 0) status = -2;
  if (status == -2 && (status = {symbol}__module_load(-1)) == 0) status = {symbol}_call({names});
  return status;
}}

#ifdef __cplusplus
}}
#endif
#endif
"""


def _layout_struct(symbol: str, parameter: dict[str, Any]) -> str:
    name = f"{symbol}_{parameter['name']}_layout_t"
    shapes, strides = dynamic_counts(parameter)
    kind = _stride_type(parameter)
    fields = (f"int32_t shape[{shapes}]; " if shapes else "") + (f"{kind} stride[{strides}]; " if strides else "")
    size = 4 * shapes + (4 if kind == "int32_t" else 8) * strides
    return (
        f"#pragma pack(push, 1)\ntypedef struct {{ {fields}}} {name};\n#pragma pack(pop)\n"
        f'{symbol}_ASSERT(sizeof({name}) == {size}, "layout of {parameter["name"]}");\n'
    )


# --- source -----------------------------------------------------------------------------------------------------------


def source_text(
    symbol: str, parameters: list[dict[str, Any]], host_text: str, codes: Codes, metadata: str
) -> str:  # fmt: skip
    """Return the C text of the object: code objects, loading, and the host program."""
    kernels = next(iter(codes.values()))[1]
    for name, info in kernels.items():
        if info.has_printf:
            raise NotExportable(problem=f"kernel {name} prints, and the records are read by the Python runtime")
    layouts = [p for p in parameters if p["kind"] == "tensor" and any(dynamic_counts(p))]
    parts = [PRELUDE]
    parts += [
        f"#pragma pack(push, 1)\ntypedef struct {{ {_plain_fields(p)} }} {p['name']}_layout_t;\n#pragma pack(pop)\n"
        for p in layouts
    ]
    for i, (code, _) in enumerate(codes.values()):
        numbers = ",".join(map(str, code))
        parts.append(f"static const uint8_t code_{i}[] __attribute__((aligned(4096))) = {{{numbers}}};\n")
    parts.append(f"static const uint8_t *const codes[] = {{{', '.join(f'code_{i}' for i in range(len(codes)))}}};\n")
    names = ", ".join(f'"{n}"' for n in kernels)
    parts.append(f"static const char *const kernel_names[] = {{{names or '0'}}};\n")
    parts.append(
        _LOADER.replace("SYMBOL", symbol)
        .replace("KERNELS", str(max(len(kernels), 1)))
        .replace("COUNT", str(len(kernels)))
    )
    parts.append(f"const char {symbol}__metadata[] = {json.dumps(metadata)};\n")
    parts.append(_host_function(symbol, parameters, host_text, kernels))
    return "".join(parts)


def _plain_fields(parameter: dict[str, Any]) -> str:
    shapes, strides = dynamic_counts(parameter)
    return (f"int32_t shape[{shapes}]; " if shapes else "") + (
        f"{_stride_type(parameter)} stride[{strides}];" if strides else ""
    )


_LOADER = r"""
static int initialised;
static struct { void *module; void *functions[KERNELS]; } devices[MOST_DEVICES];
int32_t SYMBOL__module_init(void) {
  int status = hipInit(0);
  initialised = status == 0;
  return status;
}
int32_t SYMBOL__module_load(int32_t device) {
  int before = 0, status = hipGetDevice(&before);
  if (!initialised) return -1;
  if (status) return status;
  if (device < 0) device = before;
  if (device >= MOST_DEVICES) return 101;
  if (devices[device].module) return 0;
  if (device != before && (status = hipSetDevice(device))) return status;
  void *module = 0;
  status = 209;
  for (size_t i = 0; i < sizeof codes / sizeof *codes && status; i++) status = hipModuleLoadData(&module, codes[i]);
  for (int i = 0; i < COUNT && !status; i++)
    status = hipModuleGetFunction(&devices[device].functions[i], module, kernel_names[i]);
  if (!status) devices[device].module = module;
  if (device != before) hipSetDevice(before);
  return status;
}
int32_t SYMBOL__module_unload(void) {
  int before = 0, status = hipGetDevice(&before), result = status;
  for (int device = 0; device < MOST_DEVICES && !status; device++) {
    if (!devices[device].module) continue;
    if (device != before) hipSetDevice(device);
    int failed = hipModuleUnload(devices[device].module);
    devices[device].module = 0;
    if (failed) result = failed;
    if (device != before) hipSetDevice(before);
  }
  return result;
}
"""


def _host_function(
    symbol: str, parameters: list[dict[str, Any]], host_text: str, kernels: dict[str, KernelInfo]
) -> str:
    function = ast.parse(host_text).body[0]
    assert isinstance(function, ast.FunctionDef), host_text
    names = [a.arg for a in function.args.args[1:]]
    flat = _flat_values(symbol, parameters)
    assert len(names) == len(flat), (names, flat)
    writer = _CWriter(kernels, {n for n, (_, is_float) in zip(names, flat, strict=True) if is_float})
    body = writer.function(function, set(names))
    inputs = "".join(
        f"  {'double' if is_float else 'int64_t'} {n} = {text};\n"
        for n, (text, is_float) in zip(names, flat, strict=True)
    )
    return (
        f"int32_t {symbol}(void **args) {{\n  int device = 0, status = 0;\n  if (!initialised) return -1;\n"
        "  if ((status = hipGetDevice(&device))) return status;\n"
        "  if (device >= MOST_DEVICES || !devices[device].module) return -2;\n  (void)args;\n"
        f"{inputs}{body}  return 0;\n}}\n"
    )


def _flat_values(symbol: str, parameters: list[dict[str, Any]]) -> list[tuple[str, bool]]:
    """Return (C expression, whether it is a float) of each flat argument of the host program, in its order."""
    places = {name: i for i, (_, name) in enumerate(c_parameters(symbol, parameters))}
    out: list[tuple[str, bool]] = []
    for p in parameters:
        name = p["name"]
        if p["kind"] == "tensor":
            out.append((f"(int64_t)*(void **)args[{places[f'{name}_data']}]", False))
            shapes, strides = dynamic_counts(p)
            where = f"(*({name}_layout_t **)args[{places[f'{name}_layout']}])" if shapes + strides else ""
            out += [(f"{where}->shape[{i}]", False) for i in range(shapes)]
            out += [(f"{where}->stride[{i}]", False) for i in range(strides)]
        elif p["kind"] == "number":
            kind = {n: t for t, n in c_parameters(symbol, parameters)}[name]
            out.append((f"*({kind} *)args[{places[name]}]", p["elem"].startswith(("f", "bf"))))
        else:
            out.append((f"(int64_t)*(void **)args[{places[name]}]", False))
    return out


class _CWriter:
    """Python text of a host program to C."""

    _OPERATORS = {
        ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
        ast.LShift: "<<", ast.RShift: ">>", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
        ast.GtE: ">=",
    }  # fmt: skip

    def __init__(self, kernels: dict[str, KernelInfo], floats: set[str]):
        self.kernels = list(kernels)
        self.infos = kernels
        self.floats = floats
        self.lines: list[str] = []
        self.depth = 1
        self.temporaries = 0

    def function(self, node: ast.FunctionDef, parameters: set[str]) -> str:
        assigned: set[str] = set()
        changed = True
        while changed:  # a loop carries floats into names that were met before
            changed = False
            for inner in ast.walk(node):
                if isinstance(inner, ast.Assign):
                    for target, value in _pairs(inner):
                        assigned.add(target)
                        if target not in self.floats and self.is_float(value):
                            self.floats.add(target)
                            changed = True
                elif isinstance(inner, ast.For):
                    assigned.add(inner.target.id)
        self.block(node.body)
        declared = "".join(
            f"  {'double' if n in self.floats else 'int64_t'} {n} = 0;\n" for n in sorted(assigned - parameters)
        )
        return declared + "\n".join(self.lines) + "\n"

    def is_float(self, node: ast.expr) -> bool:
        match node:
            case ast.Constant(value=value):
                return isinstance(value, float)
            case ast.Name(id=name):
                return name in self.floats
            case ast.BinOp(left=left, right=right):
                return self.is_float(left) or self.is_float(right)
            case ast.IfExp(body=a, orelse=b):
                return self.is_float(a) or self.is_float(b)
            case ast.Call(func=ast.Name(id=name), args=args):
                return name in ("float", "single", "fdiv") or name in ("min", "max") and any(map(self.is_float, args))
        return False

    def put(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def block(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self.statement(statement)

    def inside(self, opening: str, body: list[ast.stmt]) -> None:
        self.put(opening + " {")
        self.depth += 1
        self.block(body)
        self.depth -= 1
        self.put("}")

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign():
                self.assign(node)
            case ast.Expr(value=ast.Call(func=ast.Name(id="launch"), args=args)):
                self.launch(args)
            case ast.Expr(value=ast.Call(func=ast.Name(id="check_block"))):
                pass  # the driver refuses a block that is larger than the code object says
            case ast.If(test=test, body=body, orelse=orelse):
                self.inside(f"if ({self.text(test)})", body)
                if orelse:
                    self.inside("else", orelse)
            case ast.While(test=ast.Constant(value=True), body=body):
                self.inside("for (;;)", body)
            case ast.For(target=ast.Name(id=name), iter=ast.Call(args=[start, stop, step]), body=body):
                self.loop(name, start, stop, step, body)
            case ast.Break():
                self.put("break;")
            case ast.Pass():
                pass
            case _:
                raise NotExportable(problem=f"its host program has `{ast.unparse(node)}`")

    def loop(self, name: str, start: ast.expr, stop: ast.expr, step: ast.expr, body: list[ast.stmt]) -> None:
        """A counter of its own, so that the body may assign the loop's name as Python allows."""
        self.temporaries += 1
        i = f"loop{self.temporaries}"
        a, b, c = (self.text(x) for x in (start, stop, step))
        self.put(
            f"for (int64_t {i} = {a}, {i}_end = {b}, {i}_step = {c}; "
            f"{i}_step > 0 ? {i} < {i}_end : {i} > {i}_end; {i} += {i}_step) {{"
        )
        self.depth += 1
        self.put(f"{name} = {i};")
        self.block(body)
        self.depth -= 1
        self.put("}")

    def assign(self, node: ast.Assign) -> None:
        pairs = _pairs(node)
        if len(pairs) == 1:
            target, value = pairs[0]
            self.put(f"{target} = {self.text(value)};")
            return
        self.put("{")
        for i, (target, value) in enumerate(pairs):
            self.put(f"  {'double' if target in self.floats else 'int64_t'} next{i} = {self.text(value)};")
        for i, (target, _) in enumerate(pairs):
            self.put(f"  {target} = next{i};")
        self.put("}")

    def launch(self, args: list[ast.expr]) -> None:
        kernel, grid, block, cluster, smem, stream, arguments = args
        name = ast.literal_eval(kernel)
        slots = self.infos[name].explicit_args
        self.put("{")
        self.depth += 1
        for axis, size in zip("xyz", grid.elts, strict=True):
            self.put(f"int64_t grid_{axis} = {self.text(size)};")
        for i, (slot, value) in enumerate(zip(slots, arguments.elts, strict=True)):
            self.put(f"{self.argument_type(name, slot.size, self.is_float(value))} a{i} = {self.text(value)};")
        pointers = ", ".join(f"&a{i}" for i in range(len(slots)))
        self.put(f"void *parameters[] = {{{pointers or '0'}}};")
        function = f"devices[device].functions[{self.kernels.index(name)}]"
        self.put(f"int64_t lds = {self.text(smem)};")
        self.put("if (grid_x && grid_y && grid_z) {")
        self.put(f"  if (lds > 65536 && (status = hipFuncSetAttribute({function}, 8, (int)lds))) return status;")
        sizes = {"block": block.elts, "cluster": cluster.elts or [ast.Constant(1)] * 3}
        self.put("  const U grid[] = {(U)grid_x, (U)grid_y, (U)grid_z};")
        for what, nodes in sizes.items():
            self.put(f"  const U {what}[] = {{{', '.join(f'(U){self.text(n)}' for n in nodes)}}};")
        self.put(f"  status = launch_({function}, grid, block, cluster, (U)lds, (void *){self.text(stream)}, parameters);")
        self.put("  if (status) return status;")
        self.put("}")
        self.depth -= 1
        self.put("}")

    def argument_type(self, kernel: str, size: int, is_float: bool) -> str:
        known = {4: "float", 8: "double"} if is_float else {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t"}
        if size not in known:
            raise NotExportable(problem=f"kernel {kernel} takes a value of {size} bytes")
        return known[size]

    def text(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(value=bool() as value):
                return str(int(value))
            case ast.Constant(value=int() as value):
                return f"INT64_C({value})" if abs(value) > 2**31 - 1 else str(value)
            case ast.Constant(value=float() as value):
                return value.hex() if value == value and abs(value) != float("inf") else _odd_float(value)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"(-{self.text(operand)})"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"(!{self.text(operand)})"
            case ast.Name(id=name):
                return name
            case ast.BinOp(left=left, op=op, right=right):
                return self.binary(left, op, right)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return f"({self.text(left)} {self._OPERATORS[type(op)]} {self.text(right)})"
            case ast.IfExp(test=test, body=a, orelse=b):
                return f"({self.text(test)} ? {self.text(a)} : {self.text(b)})"
            case ast.Call(func=ast.Name(id=name), args=args):
                return self.call(name, args)
        raise NotExportable(problem=f"its host program has `{ast.unparse(node)}`")

    def binary(self, left: ast.expr, op: ast.operator, right: ast.expr) -> str:
        a, b = self.text(left), self.text(right)
        if isinstance(op, ast.FloorDiv):
            return f"floordiv_({a}, {b})"
        if isinstance(op, ast.Mod):
            return f"floormod_({a}, {b})"
        if isinstance(op, (ast.Add, ast.Sub, ast.Mult, ast.LShift)) and not (
            self.is_float(left) or self.is_float(right)
        ):
            return (
                f"(int64_t)((uint64_t){a} {self._OPERATORS[type(op)]} (uint64_t){b})"  # wraps, which signed C does not
            )
        return f"({a} {self._OPERATORS[type(op)]} {b})"

    def call(self, name: str, args: list[ast.expr]) -> str:
        texts = [self.text(a) for a in args]
        match name:
            case "wrap":
                return f"wrap_{texts[1]}({texts[0]})"
            case "unsigned" | "div" | "rem" | "floordiv" | "ceildiv":
                return f"{name}_({', '.join(texts)})"
            case "min" | "max":
                return f"({texts[0]} {'<' if name == 'min' else '>'} {texts[1]} ? {texts[0]} : {texts[1]})"
            case "bool":
                return f"({texts[0]} != 0)"
            case "int":
                return f"(int64_t){texts[0]}"
            case "float":
                return f"(double){texts[0]}"
            case "single":
                return f"(double)(float){texts[0]}"
            case "fdiv":
                return f"((double){texts[0]} / {texts[1]})"
            case "bf16":  # its bits
                return f"bf16_({texts[0]})"
        raise NotExportable(problem=f"its host program calls {name}")


def _odd_float(value: float) -> str:
    return "(0.0 / 0.0)" if value != value else "(1.0 / 0.0)" if value > 0 else "(-1.0 / 0.0)"


def _pairs(node: ast.Assign) -> list[tuple[str, ast.expr]]:
    (target,) = node.targets
    if isinstance(target, ast.Tuple):
        return [(t.id, v) for t, v in zip(target.elts, node.value.elts, strict=True)]
    return [(target.id, node.value)]
