"""`msg2 infer --require --forbid --knowledge`: what is known is obeyed, recorded and checked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import msg2 as package


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_what_is_known_is_obeyed_and_recorded(msg2, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "g.json"
    learn = ("infer", table, "-o", out, "--method", "msg2", "--set", "delta=0.9")
    assert msg2(*learn, "--require", "heat<fry", "--require", " heat < dip ", "--forbid", "whisk<dip").code == 0
    graph = package.load(out)
    assert graph.edge_pairs() == {("heat", "dip"), ("dip", "fry"), ("whisk", "fry")}
    assert graph.method["knowledge"] == {
        "required": [["heat", "dip"], ["heat", "fry"]],
        "forbidden": [["whisk", "dip"]],
    }
    told = tmp_path / "told.csv"
    told.write_text("kind,before,after,weight\nrequire,heat,fry,\nrequired,heat,dip,\nforbid,whisk,dip,\n")
    recorded = tmp_path / "told.json"
    recorded.write_text(json.dumps(dict(graph.method["knowledge"])))
    for path in (told, recorded):
        text = out.read_text()
        assert msg2(*learn, "--knowledge", path).code == 0
        assert out.read_text() == text


def test_weights_are_hints(msg2, table: Path, tmp_path: Path) -> None:
    told = tmp_path / "told.csv"
    told.write_text("kind,before,after,weight\nforbid,whisk,dip,8\nrequire,heat,fry,2\n")
    learn = ("infer", table, "-o", tmp_path / "g.json", "--method", "msg2", "--set", "delta=0.9")
    assert msg2(*learn, "--knowledge", told).code == 0
    graph = package.load(tmp_path / "g.json")
    assert graph.method["knowledge"] == {"hints": [["dip", "whisk", 8], ["heat", "fry", 2]]}
    assert ("whisk", "dip") not in graph.edge_pairs()


def test_knowledge_about_one_of_many_tasks(msg2, many: Path, tmp_path: Path) -> None:
    one = package.read(many, task="Perform CPR").steps[:2]
    learn = ("infer", many, "-o", tmp_path / "graphs", "--method", "always-before")
    assert msg2(*learn, "--require", f"{one[0]}<{one[1]}").code == 0
    known = {name: "knowledge" in json.loads(text)["method"] for name, text in contents(tmp_path / "graphs").items()}
    assert known == {"make-coffee.json": False, "perform-cpr.json": True, "repot-plant.json": False}
    other = package.read(many, task="Make Coffee").steps[0]
    assert "belong to different tasks" in msg2(*learn, "--require", f"{one[0]}<{other}").complaint


def test_names_with_the_sign(msg2, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("video,step\nv,a<b\nv,c\nv,a\nv,b<c\nv,d\n")
    learn = ("infer", path, "-o", tmp_path / "g.json", "--method", "msgi")
    assert msg2(*learn, "--require", "a<b<d").code == 0
    assert package.load(tmp_path / "g.json").edge_pairs() == {("a<b", "d")}
    assert "can be read in 2 ways" in msg2(*learn, "--require", "a<b<c").complaint


def test_two_signs(msg2, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "g.json"
    learn = ("infer", table, "-o", out, "--method", "always-before")
    assert msg2(*learn, "--require", "heat<<fry", "--require", " dip << heat ", "--forbid", "whisk<<fry").code == 0
    graph = package.load(out)
    assert (graph.kind("heat", "fry"), graph.kind("dip", "heat")) == ("after", "after")
    assert graph.order == (("dip", "heat"), ("heat", "fry"))
    assert not graph.ancestors("fry") & {"whisk"}
    assert graph.method["knowledge"] == {
        "required_order": [["dip", "heat"], ["heat", "fry"]],
        "forbidden_order": [["whisk", "fry"]],
    }
    told, recorded = tmp_path / "told.csv", tmp_path / "told.json"
    told.write_text("kind,before,after\nrequire-order,heat,fry\nrequire-order,dip,heat\nforbid-order,whisk,fry\n")
    recorded.write_text(json.dumps(dict(graph.method["knowledge"])))
    for path in (told, recorded):
        text = out.read_text()
        assert msg2(*learn, "--knowledge", path).code == 0
        assert out.read_text() == text


def test_a_weight_makes_a_hint_of_either_sign(msg2, table: Path, tmp_path: Path) -> None:
    told = tmp_path / "told.csv"
    told.write_text("kind,before,after,weight\nforbid-order,whisk,dip,8\nrequire-order,heat,fry,2\n")
    assert msg2("infer", table, "-o", tmp_path / "g.json", "--method", "msgi", "--knowledge", told).code == 0
    known = package.load(tmp_path / "g.json").method["knowledge"]
    assert known == {"hints": [["dip", "whisk", 8], ["heat", "fry", 2]]}


def test_the_longer_sign_is_tried_first(msg2, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("video,step\nv,a\nv,b\nv,<b\nv,a<<c\n")
    learn = ("infer", path, "-o", tmp_path / "g.json", "--method", "msgi")

    def known(text: str) -> object:
        assert msg2(*learn, "--require", text).code == 0
        return dict(package.load(tmp_path / "g.json").method["knowledge"])

    assert known("a<<b") == {"required_order": [["a", "b"]]}
    assert known("b<a<<c") == {"required": [["b", "a<<c"]]}
    assert known("<b<<a<<c") == {"required_order": [["<b", "a<<c"]]}
    assert "'z' is no step of the data" in msg2(*learn, "--require", "a<<z").complaint


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--require", "whisk<dip", "--require", "dip<fry", "--require", "fry<whisk"),
         "runs in a circle: dip<fry, fry<whisk, whisk<dip"),
        (("--require", "whisk<dip", "--require", "dip<fry", "--forbid", "whisk<fry"),
         "whisk<fry is forbidden, but it follows from what is required: whisk<dip, dip<fry"),
        (("--require", "whisk<dip", "--require", "dip<<whisk"), "runs in a circle: dip<<whisk, whisk<dip"),
        (("--require", "whisk<<dip", "--require", "dip<fry", "--forbid", "whisk<<fry"),
         "whisk<<fry is forbidden, but it follows from what is required: whisk<<dip, dip<fry"),
        (("--forbid", "whisk<whisk"), "whisk<whisk speaks of one step only"),
        (("--forbid", "whisk<bake"), "'bake' is no step of the data"),
    ],
)  # fmt: skip
def test_contradictions(msg2, table: Path, tmp_path: Path, arguments: tuple[str, ...], complaint: str) -> None:
    assert complaint in msg2("infer", table, "-o", tmp_path / "g.json", *arguments).complaint
    assert not (tmp_path / "g.json").exists()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is empty"),
        ("before,after\nwhisk,dip\n", "row 1: the columns are not kind,before,after"),
        ("kind,before,after\nrequire,whisk,dip\nperhaps,whisk,dip\n", "row 3: is no relation"),
        ("kind,before,after\nrequire,whisk\n", "row 2: there are 3 columns, but the row has 2"),
        ("kind,before,after\nrequire,whisk,bake\n", "row 2: 'bake' is no step of the data"),
        ("kind,before,after,weight\nrequire,whisk,dip,0.5\n", "row 2: the weight is '0.5'"),
        ("kind,before,after\nrequire,\"whisk,dip\n", "cannot be read"),
        ('{"required": [["whisk"]]}', "required, entry 1: is no relation"),
        ('{"required": 7}', "required, entry 1: is no relation"),
        ('{"hints": [["whisk", "dip", 1.5]]}', "hints, entry 1: the weight is '1.5'"),
        ('{"need": []}', "is not an object of required, forbidden, required_order"),
    ],
)  # fmt: skip
def test_files_of_knowledge_that_cannot_be_used(msg2, table: Path, tmp_path: Path, text: str, complaint: str) -> None:
    told = tmp_path / "told"
    told.write_text(text)
    assert complaint in msg2("infer", table, "-o", tmp_path / "g.json", "--knowledge", told).complaint
    assert not (tmp_path / "g.json").exists()


def test_a_relation_is_two_steps(msg2, table: Path, tmp_path: Path) -> None:
    ran = msg2("infer", table, "-o", tmp_path / "g.json", "--require", "whisk")
    assert ran.code == 2
    assert "--require is 'whisk'" in ran.err
