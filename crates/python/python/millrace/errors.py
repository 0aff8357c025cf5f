"""What can go wrong. Every exception of this package's own is a `MillraceError`.

Beside them there are the usual ones of Python: `TypeError` for a value of a type that has no place there, `IndexError` for a
cell that there is not, `OSError` for a file that cannot be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millrace.records import Diagnostic

__all__ = ["CommandError", "CompileError", "MillraceError", "UnknownNameError", "WriteError"]


class MillraceError(Exception):
    """The base of all exceptions of this package."""


class _Found(MillraceError):
    """Something is wrong with a text. `str()` shows each place with its line and a caret."""

    #: What was found, in the order of its places.
    diagnostics: list[Diagnostic]

    def __init__(self, text: str, diagnostics: list[Diagnostic]) -> None:
        super().__init__(text, diagnostics)
        self.diagnostics = diagnostics

    def __str__(self) -> str:
        return str(self.args[0])


class CompileError(_Found):
    """The P4 program is wrong. `diagnostics` has the warnings too."""


class CommandError(_Found, ValueError):
    """A text of runtime commands or P4Runtime JSON does not fit the program. Nothing of it was done."""


class UnknownNameError(MillraceError, KeyError):
    """The program has no such table, action, field, ..., or several of which the name is the end."""

    def __str__(self) -> str:
        # KeyError shows its argument as source code does.
        return str(self.args[0])


class WriteError(MillraceError, ValueError):
    """A write does not fit the program. Everything is as it was."""
