"""The generator of operators, for packages of their own: `python -m mindtorch_v2.codegen`; `pip install mindtorch_v2[codegen]` brings what it needs.

In a wheel its modules stand beside this file. In a checkout they stand in codegen/ at its root.
"""

from __future__ import annotations

from os import path as _os_path

if not _os_path.isfile(_os_path.join(__path__[0], "outside.py")):
    __path__.append(_os_path.join(_os_path.abspath(__path__[0] + "/../../.."), "codegen"))
