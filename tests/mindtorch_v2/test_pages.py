"""Pages of plans and pipelines: they stand alone, and say the numbers of the plan. With a Chromium on the path they are read as it shows them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._planning import command

BROWSER = next(
    filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome", "chrome"))), None
)


class _Page(HTMLParser):
    """Rows of tables by their id, elements by attributes, and the JSON of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.attributes: list[dict] = []
        self.text = text
        self.data: dict = {}
        self._table, self._inside = "", ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.attributes.append(given)
        self._inside = given.get("id", "") if tag == "script" else ""
        if tag == "table":
            self._table = given["id"]
            self.tables[self._table] = []
        elif tag == "tr":
            self.tables[self._table].append([])
        elif tag in ("td", "th"):
            self.tables[self._table][-1].append("")

    def handle_endtag(self, tag):
        self._table = "" if tag == "table" else self._table
        self._inside = ""

    def handle_data(self, data):
        if self._inside == "data":
            self.data = json.loads(data)
        elif self._table:
            self.tables[self._table][-1][-1] += data


def shown(text: str, tmp_path) -> _Page:
    """A page as a browser has it, if there is one."""
    assert not re.search(r"""(src|href)\s*=|url\(|https?://|fetch\(""", text), "a page asks for nothing"
    if BROWSER is not None:
        file = tmp_path / "page.html"
        file.write_text(text, encoding="utf-8")
        asked = [
            BROWSER,
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--dump-dom",
            file.as_uri(),
        ]
        text = subprocess.run(asked, capture_output=True, text=True, timeout=120, check=True).stdout
    return _Page(text)


@pytest.fixture(scope="module")
def plan():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Sequential(torch.nn.Linear(16, 2)))
    return torch.plan(model, torch.ones(4, 8), backward=True)


def test_a_plan_as_a_page(plan, tmp_path):
    found = shown(plan.to_html(), tmp_path)
    data = found.data
    assert (data["flops"], data["backward_flops"], data["peak"]) == (plan.flops, plan.backward_flops, plan.peak)
    assert max(row[1] for row in data["course"]) == plan.peak and data["count"] == len(plan.operations)
    assert [row[2] for row in data["course"]] == [one.name for one in plan.operations]
    assert {row[4] for row in data["course"]} == {"forward", "backward"}
    named = [given["data-module"] for given in found.attributes if "data-module" in given]
    assert named == ["", "0", "1", "2", "2.0"]
    head, *operators = found.tables["operators"]
    assert head[:4] == ["operator", "phase", "calls", "FLOPs"]
    assert {(row[0], row[1], int(row[2])) for row in operators} == {(o.name, o.phase, o.calls) for o in plan.operators}
    _, *held = found.tables["held"]
    assert sum(int(row[4]) for row in held) == len(plan.held)
    assert held[0][0] in {one.kind for one in plan.held} and sum(float(row[6][:-1]) for row in held) == pytest.approx(
        100, abs=2
    )
    assert "Linear" in found.text and f"{plan.parameters:,}" in found.text


def test_the_course_of_many_operators_keeps_its_peak(tmp_path):
    def many(x):
        for _ in range(1500):
            x = x + 1
        return torch.cat([x] * 50).sum() + x.sum()

    made = torch.plan(many, torch.ones(64))
    data = shown(made.to_html(), tmp_path).data
    assert len(data["course"]) <= 1200 < len(made.operations) and max(row[1] for row in data["course"]) == made.peak


def test_names_are_escaped(tmp_path):
    class Strange(torch.nn.Module):
        def forward(self, x):
            return x + 1

    Strange.__name__ = "<b>&</script>"
    found = shown(torch.plan(Strange(), torch.ones(2)).to_html(), tmp_path)
    assert (
        found.data["name"] == "<b>&</script>"
        and "<b>&</script>" not in found.text.partition('type="application/json"')[0]
    )


def test_the_command_writes_a_page(tmp_path, monkeypatch, capsys, plan):
    monkeypatch.setattr(command, "_plan", lambda options: plan)
    assert command.main(["--model", "X", "--html", str(tmp_path / "plan.html")]) == 0
    assert "Plan of Sequential" in capsys.readouterr().out
    assert (tmp_path / "plan.html").read_text(encoding="utf-8") == plan.to_html()
    assert command.main(["--model", "X", "--html", str(tmp_path / "no" / "plan.html")]) == 1
    assert "--html" in capsys.readouterr().err


def test_the_steps_of_a_pipeline_as_a_graph(tmp_path, capsys):
    x = torch.arange(6.0).reshape(2, 3)
    x.tolist()  # nothing of it is recorded, inside of a pipeline neither
    with torch.pipeline() as pipe:
        a = torch.tanh(x * 2 + 1)
        b = a @ a.t()
        c = (b + 1).sum()
        pipe.flush()
        d = c + 1
        text = pipe.explain(html=tmp_path / "steps.html")
    assert capsys.readouterr().out == text + "\n" and d.item() == pytest.approx(c.item() + 1)
    found = shown((tmp_path / "steps.html").read_text(encoding="utf-8"), tmp_path)
    flush, recorded = found.data["plans"][-2:]
    assert (flush["kind"], recorded["kind"]) == ("flush", "recorded")
    names = [[one["name"] for one in step["operators"]] for step in flush["steps"]]
    assert [name for step in names for name in step][:3] == ["mul.Tensor", "add.Tensor", "tanh"]
    product = next(i for i, step in enumerate(names) if step[0] in ("mm", "matmul"))
    assert flush["steps"][0]["one_pass"] and 0 in flush["steps"][product]["reads"]
    assert all(source < number for number, step in enumerate(flush["steps"]) for source in step["reads"])
    edges = [given["data-edge"] for given in found.attributes if "data-edge" in given]
    assert f"0-{product}" in edges and len(edges) == sum(
        len(s["reads"]) for p in found.data["plans"] for s in p["steps"]
    )
    assert "test_pages.py:" in flush["steps"][0]["operators"][0]["at"]
