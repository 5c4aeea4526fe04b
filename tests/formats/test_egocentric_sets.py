"""Ego-Exo4D, EgoProceL, Assembly101 and EPIC-Tent, on small files in the layouts of their releases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from msg2.errors import InputError
from msg2.formats import read, read_all

Spans = dict[str, list[tuple[str, float | None, float | None]]]


def tasks(path: Path) -> dict[str, Spans]:
    return {
        task.name: {video.id: [(s.step, s.start, s.end) for s in video.segments] for video in task}
        for task in read_all(path, repeats="keep")
    }


def complaint(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_all(path)
    return str(caught.value)


# -- Ego-Exo4D --------------------------------------------------------------------------------------------------


def keysteps() -> dict[str, Any]:
    def take(name: str, scenario: str, *rows: tuple[float, float, str]) -> dict[str, Any]:
        segments = [
            {"start_time": a, "end_time": b, "step_id": 31, "step_name": step, "step_description": "as they said it",
             "is_essential": True, "step_unique_id": 843}
            for a, b, step in rows
        ]  # fmt: skip
        meta = {"annotation_uid": "16ef", "annotator_id": 5792777457490871}
        return {"take_uid": f"u-{name}", "take_name": name, "scenario": scenario, "annotation_meta": meta,
                "segments": segments}  # fmt: skip

    def node(number: int, name: str, leaf: bool) -> dict[str, Any]:
        return {"id": number, "is_leafnode": leaf, "name": name, "parent_id": None, "parent_name": None}

    test = "Covid-19 Rapid Antigen Test"
    return {
        "annotations": {
            "u1": take("uni_covid_07_6", test, (33.204, 56.61153, "Read the instructions"), (0.85598, 33.2, "Unbox")),
            "u2": take("uni_covid_08", test),
            "u3": take("uni_cpr_1", "First Aid - CPR", (1, 2.5, "Check")),
        },
        "taxonomy": {test: {"0": node(0, test, False), "1": node(1, "Unbox", True), "2": node(2, "Blow nose", True)}},
        "vocabulary": {"843": "Unbox"},
    }


def test_ego_exo4d(tmp_path: Path) -> None:
    path = tmp_path / "keystep_train.json"
    path.write_text(json.dumps(keysteps()))
    assert tasks(path) == tasks(tmp_path) == {
        "Covid-19 Rapid Antigen Test": {
            "uni_covid_07_6": [("Unbox", 0.85598, 33.2), ("Read the instructions", 33.204, 56.61153)],
            "uni_covid_08": [],
        },
        "First Aid - CPR": {"uni_cpr_1": [("Check", 1, 2.5)]},
    }  # fmt: skip
    steps = read(path, task="Covid-19 Rapid Antigen Test").steps
    assert steps == ("Blow nose", "Read the instructions", "Unbox")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"start_time": "0"}, r"$.annotations.u1.segments[0].start_time: is not a number"),
        ({"start_time": 99}, r"$.annotations.u1.segments[0]: step 'Read the instructions' ends at 56.6115, before"),
        ({"end_time": 10**400}, r"$.annotations.u1.segments[0]: has a time that is too large"),
        ({"step_name": None}, r"$.annotations.u1.segments[0].step_name: is not text"),
    ],
)
def test_broken_keysteps(tmp_path: Path, change: dict[str, Any], expected: str) -> None:
    value = keysteps()
    value["annotations"]["u1"]["segments"][0] |= change
    (tmp_path / "k.json").write_text(json.dumps(value))
    assert expected in complaint(tmp_path / "k.json")


# -- EgoProceL --------------------------------------------------------------------------------------------------


def test_egoprocel(tmp_path: Path) -> None:
    root = tmp_path / "annotations"
    rows = {
        "CMU-MMAC/Brownie/S07_Brownie_Video/S07_Brownie_7150991-1431.csv": "12.5,20,3 crack egg\n1,12.5,1 take bowl\n",
        "CMU-MMAC/Brownie/S08_Brownie_Video/S08_Brownie_7150991-1431.csv": "0,4.25,1 take bowl\n",
        "EGTEA_Gaze+/Pizza/OP01-R03-Pizza.csv": '3,9,"2. cut onion, cheese"\n',
        "pc_assembly/Head_5.csv": "0,10,1 fix motherboard\n10,12,2 fix fan\n",
    }
    for name, text in rows.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    brownie = {
        "S07_Brownie_7150991-1431": [("1 take bowl", 1, 12.5), ("3 crack egg", 12.5, 20)],
        "S08_Brownie_7150991-1431": [("1 take bowl", 0, 4.25)],
    }
    head = {"Head_5": [("1 fix motherboard", 0, 10), ("2 fix fan", 10, 12)]}
    assert tasks(root) == {
        "Brownie": brownie,
        "Pizza": {"OP01-R03-Pizza": [("2. cut onion, cheese", 3, 9)]},
        "pc_assembly": head,
    }
    assert tasks(root / "CMU-MMAC/Brownie") == {"Brownie": brownie}
    assert tasks(root / "pc_assembly") == {"pc_assembly": head}
    assert tasks(root / "pc_assembly/Head_5.csv") == {"Head_5": head}
    (root / "pc_assembly/Head_5.csv").unlink()
    (root / "pc_assembly/Head_5.json").write_text('[[0, 10, "1 fix motherboard"],\n [10, 12, "2 fix fan"]]')
    assert tasks(root / "pc_assembly") == {"pc_assembly": head}


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("v.csv", "0,1,a\n1,x,b\n", "v.csv, row 2: 'x' is not a number of seconds"),
        ("v.csv", "0,1,a\n1,2\n", "v.csv, row 2: there are 3 columns, but the row has 2"),
        ("v.csv", "0,1,a\n3,2,b\n", "v.csv, row 2: step 'b' ends at 2, before its start at 3"),
        ("v.csv", f"0,1,a\n3,{'9' * 400},b\n", "v.csv, row 2: step 'b' has the end inf"),
        ("v.json", '[[0, 1, "a"], [1, "2", "b"]]', r"v.json, $[1][1]: is not a number"),
        ("v.json", '[[0, 1, "a"], {}]', r"v.json, $[1]: is not a list"),
    ],
)
def test_broken_egoprocel(tmp_path: Path, name: str, text: str, expected: str) -> None:
    (tmp_path / name).write_text(text)
    assert expected in complaint(tmp_path / name)


def test_a_folder_of_other_tables_is_not_searched(tmp_path: Path) -> None:
    (tmp_path / "steps.csv").write_text("video,step\nv,a\n")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "v.csv").write_text("0,1,a\n")
    assert list(tasks(tmp_path)) == ["steps"]


# -- Assembly101 ------------------------------------------------------------------------------------------------

FINE = (
    "id,video,start_frame,end_frame,action_id,verb_id,noun_id,action_cls,verb_cls,noun_cls,toy_id,toy_name,is_shared,"
    "is_RGB\n"
)
SEQUENCE = "nusar-2021_action_both_9033-a30_9033_user_id_2021-02-04_131528"


def fine(number: int, view: str, start: int, end: int, action: str) -> str:
    return f"{number},{SEQUENCE}/{view}.mp4,{start},{end},10,18,27,{action},clap,hand,a30,suv,0,1\n"


def test_assembly101_fine(tmp_path: Path) -> None:
    rows = [("clap hand", 84, 111), ("pick up screw", 111, 150)]
    for split in ("train", "actions"):
        (tmp_path / f"{split}.csv").write_text(
            "action_id,verb_id,noun_id,action_cls,verb_cls,noun_cls\n21,0,11,attach arm,attach,arm\n"
        )
    (tmp_path / "train.csv").write_text(
        FINE
        + "".join(fine(n, view, a, b, step) for view in ("C1_rgb", "C2_rgb") for n, (step, a, b) in enumerate(rows))
    )
    assert tasks(tmp_path) == {"suv": {SEQUENCE: [("clap hand", 2.8, 3.7), ("pick up screw", 3.7, 5)]}}
    (tmp_path / "train.csv").write_text(FINE + fine(0, "C1_rgb", 84, 111, "a").replace("111", "1e2"))
    assert "train.csv, row 2: the frame '1e2' is not a whole number" in complaint(tmp_path)


def test_assembly101_coarse(tmp_path: Path) -> None:
    folder = tmp_path / "coarse-annotations" / "coarse_labels"
    folder.mkdir(parents=True)
    (folder / f"assembly_{SEQUENCE}.txt").write_text("000000030\t000000090\tattach wheel\n000000090\t000000120\tspin\n")
    (folder / f"disassembly_{SEQUENCE}.txt").write_text("000006833\t000007554\tdetach wheel\n")
    expected = {
        "assembly": {SEQUENCE: [("attach wheel", 1, 3), ("spin", 3, 4)]},
        "disassembly": {SEQUENCE: [("detach wheel", 6833 / 30, 7554 / 30)]},
    }
    assert tasks(folder) == tasks(folder.parent) == expected


def test_assembly101_mistakes(tmp_path: Path) -> None:
    (tmp_path / f"{SEQUENCE}.csv").write_text(
        "2700,3000,attach,interior,chassis,correct,\n3000,3300,attach,wheel,chassis,mistake,wrong order\n"
    )
    expected = {"assembly": {SEQUENCE: [("attach interior", 90, 100), ("attach wheel", 100, 110)]}}
    assert tasks(tmp_path) == expected


# -- EPIC-Tent --------------------------------------------------------------------------------------------------

TENT = """\
subject_id,str_GoPro_ts,end_GoPro_ts,str_GoPro_frame,end_GoPro_frame,str_SMI_w_ts,end_SMI_w_ts,str_SMI_w_frame,\
end_SMI_w_frame,str_SMI_wo_ts,end_SMI_wo_ts,str_SMI_wo_frame,end_SMI_wo_frame,action_label
1,-1:-1:-1:-1,-1:-1:-1:-1,-1,-1,00:03:29:09,00:03:48:15,6279,6855,00:03:27:21,00:03:47:01,4989,5449,4
1,00:00:06:07,00:00:28:47,367,1726,00:05:42:04,00:06:04:24,10264,10944,00:05:40:15,00:06:03:07,8175,8719,10
2,00:00:17:21,00:00:41:48,1040,2506,00:01:49:07,00:02:13:20,3277,4010,00:01:48:08,00:02:12:18,2600,3186,4
"""


def test_epic_tent(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "Synchronised_action_label.txt"
    path.write_text(TENT)
    header, row = TENT.splitlines()[0], TENT.splitlines()[1]
    (tmp_path / "Synchronised_error_label.txt").write_text(
        header.replace(",action_label", ",error_label_main,error_label_sub,action_label") + f"\n{row},-1,4\n"
    )
    subjects = {
        "1": [("instruction", 209.3, 228.5), ("spread tent", 10264 / 30, 364.8)],
        "2": [("instruction", 3277 / 30, 4010 / 30)],
    }
    assert tasks(path) == tasks(tmp_path) == {"EPIC-Tent": subjects}
    assert len(read(path).steps) == 12
    path.write_text(TENT + row.replace("6279", "-1") + "\n")
    assert tasks(path) == {"EPIC-Tent": subjects}
    assert "rows without a time of the camera with the eye tracker, not read: 1" in caplog.text


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ((",5449,4", ",5449,12"), "row 2: the action '12' is unknown, there are 0 … 11"),
        (("6279", "6280"), "row 2: the frame '6280' is not that of the time '00:03:29:09', with 30 to a second"),
        (("00:03:29:09", "3:29"), "row 2: the frame '6279' is not that of the time '3:29'"),
        (("\n1,-1", "\n,-1"), "row 2: the name of the video or of the task is empty"),
        (("00:03:48:15,6279,6855", "00:03:28:15,6279,6255"), "row 2: step 'instruction' ends at 208.5, before"),
    ],
)
def test_broken_epic_tent(tmp_path: Path, change: tuple[str, str], expected: str) -> None:
    path = tmp_path / "Synchronised_action_label.txt"
    path.write_text(TENT.replace(*change))
    assert expected in complaint(path)
