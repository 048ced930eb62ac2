"""The `fly_rocdl` dialect: names the AMD-only parts of Fly types (atoms and the buffer address space print with its prefix)."""

from flydsl.ir import PythonDialect, ir


class FlyRocdl(PythonDialect, name="fly_rocdl"):
    """Holds attributes only; AMD instructions are ops of the upstream `rocdl` dialect."""


class TargetAddressSpace(FlyRocdl.Attribute, name="address_space"):
    """An address space that only AMD targets have; the text is its name, `buffer_desc`."""

    text: ir.StringAttr
