"""`@flyc.kernel`: a function that is traced into a `gpu.func` at each launch."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Sequence
from typing import Any, overload

from flydsl import arch as chips
from flydsl.compiler.annotations import resolved_signature
from flydsl.compiler.context import CompilationContext  # noqa: F401  (imported from here by kernels)
from flydsl.compiler.launch_arguments import KernelArguments, check_grid, declared_values, launch_sizes
from flydsl.compiler.loading import load_named
from flydsl.diag import (
    ArgumentCount,
    BlockSizeConflict,
    DynamicSharedTooSmall,
    KernelInKernel,
    KernelOutsideJit,
    MissingLaunch,
    SharedCapacity,
    UserError,
)
from flydsl.expr.numeric import Numeric
from flydsl.expr.typing import Stream
from flydsl.frontend import other_errors, rewritten
from flydsl.ir import Trace, current, emit, ir, is_tracing


class KernelContext:
    """What one kernel being traced remembers: ids already read, LDS handed out. Hangs on the scope of the trace."""

    kind = "kernel"

    def __init__(self, name: str, block: tuple[int, int, int] | None, gpu_module: ir.Operation):
        self.name = name
        self.known_block_size = block
        self.gpu_module = gpu_module
        self.dynamic_shared_bytes = 0
        self.static_shared_bytes = 0
        self.function: ir.Operation | None = None


_ATTRIBUTE_KEYWORDS = ("unit_attrs", "value_attrs")


class KernelFunction:
    """A kernel. Called inside a jit function it returns a `KernelLauncher`; anywhere else it raises."""

    def __init__(self, func: Callable, *, name: str | None = None, known_block_size: Sequence[int] | None = None):
        functools.update_wrapper(self, func)
        self.func = self._func = func  # kernels reach for `_func`
        self._explicit_name = name
        self._declared = _checked_block_size(known_block_size)
        self._set_while_tracing: tuple[weakref.ref[Trace], tuple[int, int, int] | None] | None = None
        self.signature = inspect.signature(func)
        load_named(getattr(func, "__code__", None))

    @property
    def name(self) -> str:
        """The explicit name, or that of the function now: a jit function may rename it before it launches."""
        return self._explicit_name or self.func.__name__

    @property
    def known_block_size(self) -> tuple[int, int, int] | None:
        """The block size that is compiled into the kernel."""
        if self._set_while_tracing is not None and is_tracing() and self._set_while_tracing[0]() is current():
            return self._set_while_tracing[1]
        return self._declared

    @property
    def _known_block_size(self) -> list[int] | None:
        """Read and set by public kernels. What a jit function sets holds while it is traced: it follows from its arguments."""
        return self.known_block_size and list(self.known_block_size)

    @_known_block_size.setter
    def _known_block_size(self, sizes: Sequence[int] | None) -> None:
        checked = _checked_block_size(sizes)
        if is_tracing():
            self._set_while_tracing = (weakref.ref(current()), checked)
        else:
            self._declared = checked

    def __get__(self, obj: Any, owner: type | None = None) -> Any:
        return self if obj is None else functools.partial(self, obj)

    __watched__ = ("_declared",)  # attributes that may be set later

    def __captured__(self) -> list[tuple[str, Any]]:
        """What code generated from this kernel depends on (`compiler.fingerprint`)."""
        return [("func", self.func), ("name", self._explicit_name), ("known_block_size", self._declared)]

    def __call__(self, *args: Any, **kwargs: Any) -> KernelLauncher:
        trace = current() if is_tracing() else None
        if trace is None or trace.scope is None:
            raise KernelOutsideJit(kernel=self.name)
        if trace.scope.kind != "host":
            raise KernelInKernel(kernel=self.name, caller=trace.scope.root.co_name)
        attrs = {n: kwargs.pop(n) for n in _ATTRIBUTE_KEYWORDS if n in kwargs and n not in self.signature.parameters}
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as e:
            raise ArgumentCount(function=self.name, problem=str(e), signature=self.signature) from None
        bound.apply_defaults()
        signature = resolved_signature(self.func, self.signature)
        declared_values(signature, bound, self.name)
        return KernelLauncher(self, signature, bound, trace, **attrs)


class KernelLauncher:
    """A kernel with its arguments; `launch` states the grid and traces the body.

    Attributes of the kernel's function may be given here or at `launch`, which wins.
    """

    def __init__(
        self,
        kernel: KernelFunction,
        signature: inspect.Signature,
        bound: inspect.BoundArguments,
        trace: Trace,
        unit_attrs: Sequence[str] | None = None,
        value_attrs: dict[str, Any] | None = None,
    ):
        self.unit_attrs, self.value_attrs = tuple(unit_attrs or ()), dict(value_attrs or {})
        self.kernel = kernel
        self.signature = signature  # with annotation objects
        self.bound = bound
        self.trace = trace
        self.launched = False
        missing = MissingLaunch(kernel=kernel.name)
        self.called_at = missing.span
        pending_launches(trace).append((self, missing))

    def launch(
        self,
        *,
        grid: Any,
        block: Any,
        smem: Any = None,
        stream: Stream | None = None,
        cluster: Any = None,
        unit_attrs: Sequence[str] | None = None,
        value_attrs: dict[str, Any] | None = None,
    ) -> None:
        """Launch the kernel.

        Shapes   grid, block, cluster: an int or Int32, or a tuple of one to three; missing sizes are 1
        Units    smem in bytes of dynamic LDS, by default what the kernel allocates
        Raises   BlockSizeConflict, DynamicSharedTooSmall, LaunchGeometry, SharedCapacity
        """
        self.launched = True
        grid_sizes, block_sizes = launch_sizes(grid, "grid"), launch_sizes(block, "block")
        cluster_sizes = launch_sizes(cluster, "cluster") if cluster is not None else None
        check_grid(grid_sizes, block_sizes)
        static_block = tuple(block_sizes) if all(isinstance(n, int) for n in block_sizes) else None
        declared = self.kernel.known_block_size
        if declared and static_block and declared != static_block:
            raise BlockSizeConflict(kernel=self.kernel.name, launched=static_block, declared=declared)
        arguments = KernelArguments(self.signature, self.bound, self.kernel.name, self.called_at)
        units, valued = (*self.unit_attrs, *(unit_attrs or ())), {**self.value_attrs, **(value_attrs or {})}
        attrs = _extra_attributes(units, valued, cluster_sizes)
        context = trace_kernel(self.kernel, arguments, self.trace, declared or static_block, attrs)
        smem = self._dynamic_bytes(smem, context)
        _emit_launch(self.trace, context, arguments, (grid_sizes, block_sizes, cluster_sizes), smem, stream)

    def _dynamic_bytes(self, smem: Any, context: KernelContext) -> Any:
        needed = context.dynamic_shared_bytes
        if smem is None:
            return needed
        if isinstance(smem, Numeric) and smem.is_static():
            smem = int(smem.value)
        if isinstance(smem, int) and smem < needed:
            raise DynamicSharedTooSmall(kernel=self.kernel.name, given=smem, needed=needed)
        if isinstance(smem, int):
            _check_shared_capacity(context.static_shared_bytes, smem, self.trace.arch)
        return smem


def _check_shared_capacity(static: int, dynamic: int, arch: str) -> None:
    limit = chips.get(arch).lds.bytes
    if static + dynamic > limit:
        parts = f"arrays of the kernel {static}; dynamic (smem) {dynamic}"
        raise SharedCapacity(used=static + dynamic, limit=limit, arch=arch, parts=parts)


@overload
def kernel(func: Callable) -> KernelFunction: ...


@overload
def kernel(
    func: None = None, *, name: str | None = None, known_block_size: Sequence[int] | None = None
) -> Callable[[Callable], KernelFunction]: ...


def kernel(
    func: Callable | None = None, *, name: str | None = None, known_block_size: Sequence[int] | None = None
) -> Any:
    """Make a function a GPU kernel; usable with and without arguments.

    `known_block_size`: three positive ints (x, y, z) that are compiled into the kernel.
    """
    if func is None:
        return lambda f: KernelFunction(f, name=name, known_block_size=known_block_size)
    return KernelFunction(func, name=name, known_block_size=known_block_size)


def pending_launches(trace: Trace) -> list:
    """Return the launchers of a trace with the error to raise for those that were never launched."""
    if not hasattr(trace, "pending_launches"):
        trace.pending_launches = []
    return trace.pending_launches


def check_launched(trace: Trace) -> None:
    """Refuse kernel calls without `.launch(...)`."""
    for launcher, error in pending_launches(trace):
        if not launcher.launched:
            raise error


def gpu_module(trace: Trace) -> ir.Operation:
    """Return the module's `gpu.module @kernels`, made on first use before the host function."""
    if getattr(trace, "gpu_module", None) is None:
        body = trace.module.body
        ip = ir.InsertionPoint.at_block_begin(body)
        attrs = {"sym_name": ir.StringAttr.get("kernels")}
        op = ir.Operation.create("gpu.module", [], [], attrs, None, 1, trace.unknown_loc, ip)
        op.regions[0].blocks.append()
        trace.gpu_module = op
        trace.kernel_count = 0
    return trace.gpu_module


def trace_kernel(
    kernel: KernelFunction,
    arguments: KernelArguments,
    trace: Trace,
    block: tuple[int, int, int] | None,
    attrs: dict[str, ir.Attribute],
) -> KernelContext:
    """Trace the body of a kernel into a new function of the module; an error carries the other errors of the kernel."""
    try:
        return _trace_body(kernel, rewritten(kernel.func, kernel=True), arguments, trace, block, attrs)
    except UserError as first:
        first.others = other_errors(kernel.func, first, lambda fn: _trace_body(kernel, fn, arguments, trace, block, attrs))
        raise


def _trace_body(
    kernel: KernelFunction,
    fn: Callable,
    arguments: KernelArguments,
    trace: Trace,
    block: tuple[int, int, int] | None,
    attrs: dict[str, ir.Attribute],
) -> KernelContext:
    module = gpu_module(trace)
    name = f"{kernel.name}_{trace.kernel_count}"
    trace.kernel_count += 1
    context = KernelContext(name, block, module)
    attributes = {
        "sym_name": ir.StringAttr.get(name),
        "function_type": ir.TypeAttr.get(ir.FunctionType.get(arguments.types, [])),
        "kernel": ir.UnitAttr.get(),
        "fly.params": ir.ArrayAttr.get([ir.StringAttr.get(n) for n in arguments.names]),
        **attrs,
    }
    if block is not None:
        attributes["known_block_size"] = ir.DenseI32ArrayAttr.get(list(block))
    body_block = module.regions[0].blocks[0]
    loc = trace.locations.of_code(kernel.func.__code__)
    function = ir.Operation.create("gpu.func", [], [], attributes, None, 1, loc, ir.InsertionPoint(body_block))
    entry = function.regions[0].blocks.append(*arguments.types, arg_locs=[loc] * len(arguments.types))
    context.function = function
    with trace.in_function(entry, "kernel", fn.__code__, context):
        args, kwargs = arguments.rebuild(list(entry.arguments))
        fn(*args, **kwargs)
        emit("gpu.return", loc=loc)
    return context


def _emit_launch(
    trace: Trace, context: KernelContext, arguments: KernelArguments, sizes: tuple, smem: Any, stream: Any
) -> None:
    grid, block, cluster = sizes
    operands = [index_value(n) for n in (*grid, *block)]
    segments = [0] + [1] * 6 + [1 if cluster is not None else 0] * 3
    if cluster is not None:
        operands += [index_value(n) for n in cluster]
    has_smem = not (isinstance(smem, int) and smem == 0)
    if has_smem:
        operands.append(i32_value(smem))
    operands += arguments.values
    handle = stream.value if isinstance(stream, Stream) and isinstance(stream.value, ir.Value) else None
    if handle is not None:
        operands.append(handle)
    segments += [1 if has_smem else 0, len(arguments.values), 1 if handle is not None else 0]
    attrs = {
        "kernel": ir.SymbolRefAttr.get(["kernels", context.name]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get(segments),
    }
    emit("gpu.launch_func", [], operands, attrs)


def index_value(n: Any) -> ir.Value:
    """Return a launch size as an `index` value."""
    from flydsl.expr.numeric import Index

    return Index(n).ir_value()


def i32_value(n: Any) -> ir.Value:
    """Return a number as an i32 value."""
    from flydsl.expr.numeric import Int32

    return Int32(n).ir_value()


def _checked_block_size(sizes: Sequence[int] | None) -> tuple[int, int, int] | None:
    if sizes is None:
        return None
    if not isinstance(sizes, (tuple, list)):
        raise TypeError(f"known_block_size is a sequence of 3 positive integers (x, y, z), got {sizes!r}")
    sizes = tuple(n.value if isinstance(n, Numeric) and n.is_static() else n for n in sizes)
    if len(sizes) != 3:
        raise ValueError(f"known_block_size has exactly 3 elements (x, y, z), got {sizes}")
    for n in sizes:
        if type(n) is not int:
            raise TypeError(f"an element of known_block_size must be an int, got {n!r}")
    if min(sizes) < 1:
        raise ValueError(f"known_block_size must be positive, got {sizes}")
    return sizes


def _extra_attributes(
    unit_attrs: Sequence[str] | None, value_attrs: dict[str, Any] | None, cluster: Sequence | None
) -> dict[str, ir.Attribute]:
    attrs = {name: ir.UnitAttr.get() for name in unit_attrs or ()}
    for name, value in (value_attrs or {}).items():
        if value is not None:
            attrs[name] = _attribute(value)
    if cluster is not None and all(isinstance(n, int) for n in cluster):
        attrs["known_cluster_size"] = ir.DenseI32ArrayAttr.get(list(cluster))
    return attrs


def _attribute(value: Any) -> ir.Attribute:
    if isinstance(value, ir.Attribute):
        return value
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, int):
        return ir.IntegerAttr.get(current().types.i32, value)
    return ir.StringAttr.get(str(value))
