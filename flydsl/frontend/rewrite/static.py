"""What the text alone tells: conditions that are always Python values, and loops that may become run-time loops."""

import ast

_STATIC_CALLS = frozenset(("const_expr", "isinstance", "issubclass", "hasattr", "callable", "is_static"))
_IDENTITY = (ast.Is, ast.IsNot, ast.In, ast.NotIn)


def called_name(node: ast.expr) -> str | None:
    """Return `f` for `f(...)` and for `m.f(...)`."""
    if not isinstance(node, ast.Call):
        return None
    func = node.func
    return func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else None


def is_static_test(test: ast.expr) -> bool:
    """Return whether a condition is a Python value whatever its operands are."""
    match test:
        case ast.Constant():
            return True
        case ast.Call():
            return called_name(test) in _STATIC_CALLS
        case ast.Compare():
            return all(isinstance(op, _IDENTITY) for op in test.ops)
        case ast.UnaryOp(op=ast.Not()):
            return is_static_test(test.operand)
        case ast.BoolOp():
            return all(is_static_test(v) for v in test.values)
    return False


def is_range_loop(node: ast.For) -> bool:
    """Return whether a loop is over a call of the name `range`, also as an attribute (`fx.range`)."""
    return called_name(node.iter) == "range"


def may_be_dynamic(node: ast.stmt) -> bool:
    """Return whether a statement can become control flow of the kernel."""
    if isinstance(node, ast.If):
        return not is_static_test(node.test)
    if isinstance(node, ast.While):
        return called_name(node.test) != "const_expr"
    return isinstance(node, ast.For) and is_range_loop(node)


def init_loop(node: ast.stmt) -> bool:
    """Return whether a loop is `for ... in range(..., init=...)`."""
    return isinstance(node, ast.For) and is_range_loop(node) and any(k.arg == "init" for k in node.iter.keywords)
