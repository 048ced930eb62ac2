"""How a Python-defined dialect gets into a context."""

from torch_mlir.dialects import _ods_common, ext, irdl

from flydsl.ir.bindings import ir

_bindings = _ods_common._cext


class PythonDialect(ext.Dialect, name="python"):
    """Base of the dialects defined in Python.

    `ext.Dialect.load` runs `cse` over the definition, which makes all operands of an op share one constraint variable: their types would have
    to be equal. This `load` keeps the definition as written.
    """

    @classmethod
    def load(cls) -> None:
        """Define the dialect in the current context and register its classes with the bindings."""
        cls._mlir_module = cls._emit_module()
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
