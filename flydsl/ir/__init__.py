"""The only place that touches the MLIR bindings: contexts, tracing, locations, spelling, rewriting.

Everyone else imports the bindings from here (`from flydsl.ir import ir, PassManager`), so that a change of the
wheel that carries them is a change of this package.
"""

from flydsl.ir.bindings import PassManager, dialect, ext, ir, rewrite, translate_module_to_llvmir
from flydsl.ir.context import Types, get_context, get_types, make_context, make_context_ahead, register_loader
from flydsl.ir.python_dialect import PythonDialect
from flydsl.ir.spelling import parse_attribute, parse_module, parse_type, print_op, to_bindings, to_reference
from flydsl.ir.trace import Trace, constant, current, emit, emit1, is_tracing

__all__ = [
    "PassManager",
    "PythonDialect",
    "Trace",
    "Types",
    "constant",
    "current",
    "dialect",
    "emit",
    "emit1",
    "ext",
    "get_context",
    "get_types",
    "ir",
    "is_tracing",
    "make_context",
    "make_context_ahead",
    "parse_attribute",
    "parse_module",
    "parse_type",
    "print_op",
    "register_loader",
    "rewrite",
    "to_bindings",
    "to_reference",
    "translate_module_to_llvmir",
]
