"""How a Python-defined dialect gets into a context."""

import functools
from typing import Any

from torch_mlir.dialects import _ods_common, ext, irdl

from flydsl.ir.bindings import ir

_bindings = _ods_common._cext


class PythonDialect(ext.Dialect, name="python"):
    """Base of the dialects defined in Python.

    `ext.Dialect.load` runs `cse` over the definition, which makes all operands of an op share one constraint variable: their types would have
    to be equal. This `load` keeps the definition as written, and reads it from text: building it op by op takes five times as long.
    """

    @classmethod
    def load(cls) -> None:
        """Define the dialect in the current context and register its classes with the bindings."""
        cls._mlir_module = ir.Module.parse(definition_text(cls))
        irdl.load_dialects(cls._mlir_module)
        _bindings.globals._register_dialect_impl(cls.DIALECT_NAMESPACE, cls, replace=True)
        for op in cls.operations:
            op._attach_traits()
            _bindings.register_operation(cls, replace=True)(op)
            _bindings.register_op_adaptor(op, replace=True)(op.Adaptor)
        for type_ in cls.types:
            _bindings.register_type_caster(ir.DynamicType.lookup_typeid(type_.type_name), replace=True)(type_)
        for attr in cls.attributes:
            _bindings.register_type_caster(ir.DynamicAttr.lookup_typeid(attr.attr_name), replace=True)(attr)


@functools.cache
def definition_text(dialect: type[PythonDialect]) -> str:
    """Return the IRDL text that defines `dialect`. Constraints are `Any` and upstream attribute classes."""
    types = [_parameters("type", t) for t in dialect.types]
    attributes = [_parameters("attribute", a) for a in dialect.attributes]
    body = "\n".join([*types, *attributes, *map(_operation, dialect.operations)])
    return f"irdl.dialect @{dialect.name} {{\n{body}\n}}\n"


def _parameters(kind: str, cls: Any) -> str:
    bases = "\n".join(f"%{i} = {_constraint(f.constraint)}" for i, f in enumerate(cls._fields))
    names = ", ".join(f"{f.name}: %{i}" for i, f in enumerate(cls._fields))
    return f"irdl.{kind} @{cls._name} {{\n{bases}\nirdl.parameters({names})\n}}"


def _operation(cls: Any) -> str:
    """Every operand, attribute and result has a constraint variable of its own; none shares its type with another."""
    lines: list[str] = []
    entries: dict[type, list[str]] = {ext.OperandDef: [], ext.AttributeDef: [], ext.ResultDef: []}
    for i, field in enumerate(cls._fields):
        lines.append(f"%{i} = {_constraint(field.constraint)}")
        if isinstance(field, ext.AttributeDef):
            entries[ext.AttributeDef].append(f'"{field.name}" = %{i}')
        else:
            count = "" if field.variadicity.name == "single" else f"{field.variadicity.name} "
            entries[type(field)].append(f"{field.name}: {count}%{i}")
    for kind, form in ((ext.OperandDef, "operands({})"), (ext.AttributeDef, "attributes {{{}}}"), (ext.ResultDef, "results({})")):
        if entries[kind]:
            lines.append("irdl." + form.format(", ".join(entries[kind])))
    return f"irdl.operation @{cls._op_name} {{\n" + "\n".join(lines) + "\n}"


def _constraint(constraint: Any) -> str:
    return "irdl.any" if constraint is Any else f'irdl.base "#{constraint.attr_name}"'
