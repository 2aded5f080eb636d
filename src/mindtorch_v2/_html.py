"""Pages that stand alone: one file with its styles, drawings and numbers, which asks nothing of a network."""

from __future__ import annotations

import json
from html import escape
from typing import Any

__all__ = ["escape", "page"]

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --dim: #66707f; --paper: #ffffff; --card: #f5f7fa; --rule: #d9dfe7; --main: #2f6fde; --back: #d9812b; --base: #9db7e8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ee; --dim: #97a1b0; --paper: #14181f; --card: #1d232d; --rule: #343c49; --main: #6aa0ff; --back: #f0a35a; --base: #3d5688; }
}
body { font: 14px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2em auto; padding: 0 1.5em; max-width: 1200px; }
h1 { font-size: 1.5em; margin: 0 0 .4em; } h2 { font-size: 1.1em; margin: 1.8em 0 .5em; }
.cards { display: flex; flex-wrap: wrap; gap: .7em; } .card { background: var(--card); border: 1px solid var(--rule); border-radius: 6px; padding: .5em .9em; }
.card b { display: block; font-size: 1.2em; } .card span, .note { color: var(--dim); font-size: .9em; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; } th, td { text-align: right; padding: .2em .6em; border-bottom: 1px solid var(--rule); }
th { color: var(--dim); font-weight: 500; } td:first-child, th:first-child, td.text, th.text { text-align: left; }
svg { display: block; width: 100%; height: auto; } svg text { fill: var(--ink); font: 11px system-ui, sans-serif; } svg .dim { fill: var(--dim); }
.scroll { overflow-x: auto; } .scroll svg { width: auto; max-width: none; }
.bar { display: inline-block; height: .75em; background: var(--main); vertical-align: baseline; } .bar.back { background: var(--back); }
.tree summary, .tree .leaf { display: grid; grid-template-columns: minmax(14em, 1fr) 8em 8em 8em 8em 8em 10em; gap: .4em; padding: .15em 0; border-bottom: 1px solid var(--rule);
  font-variant-numeric: tabular-nums; text-align: right; cursor: pointer; } .tree .leaf { cursor: default; }
.tree summary > :first-child, .tree .leaf > :first-child { text-align: left; } .tree summary > :last-child, .tree .leaf > :last-child { text-align: left; white-space: nowrap; }
.tree summary { list-style: none; } .tree summary > :first-child::before { content: "\\25b8 "; color: var(--dim); } .tree details[open] > summary > :first-child::before { content: "\\25be "; }
.tree .head { color: var(--dim); } .kind { color: var(--dim); }
"""


def page(title: str, body: str, data: Any, script: str = "") -> str:
    """A page. data: what a program may read back, as JSON in the element of the id `data`, of which the script may make use too."""
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>\n'
        f'<style>{_STYLE}</style></head>\n<body>\n<h1>{escape(title)}</h1>\n{body}\n<script type="application/json" id="data">{text}</script>\n'
        f"<script>{script}</script>\n</body></html>\n"
    )
