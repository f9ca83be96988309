"""Runs that are merged from other runs instead of being trained: the key `merge` of a method.

`ALL_OPERATIONS` also finds the operations that installed packages declare as entry points of the group `xlgrid.merges`.
"""

from xlgrid.base.plugins import Extensible, is_subclass_of
from xlgrid.merging.fisher import Fisher
from xlgrid.merging.operation import Operation
from xlgrid.merging.operations import Average, Dare, Sum, TaskArithmetic, Ties

OPERATIONS: dict[str, type[Operation]] = {
    "average": Average,
    "sum": Sum,
    "task-arithmetic": TaskArithmetic,
    "ties": Ties,
    "dare": Dare,
    "fisher": Fisher,
}

ALL_OPERATIONS = Extensible[type[Operation]](
    "operation",
    "xlgrid.merges",
    OPERATIONS,
    fits=is_subclass_of(Operation),
    expected="a subclass of xlgrid.merging.Operation",
)

__all__ = ["ALL_OPERATIONS", "OPERATIONS", "Operation"]
