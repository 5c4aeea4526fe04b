"""Scenes: what the storyboard shows is to be seen, and nothing else of the task; things look alike in all videos."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from experiments.rendering.scenes import MOTIONS, Prop, RenderOptions, draw_frames, draw_props, split_step_name
from experiments.rendering.sprites import TURNS, Look, draw_distinct_looks, draw_look, paste_sprite, sprite
from msg2.simulation import household_worlds
from msg2.simulation.simulated_features import Storyboard

PLAIN = RenderOptions(grain=0, black=0, clutter=2)
STEPS = ("fill kettle", "boil water in kettle", "stir in milk")
PROPS = draw_props("tea", STEPS, seed=0)
FRAMES, PER_SHOT = 40, 20


def storyboard_with(
    shown: dict[int, tuple[int, float]] | None = None, done: dict[int, int] | None = None
) -> Storyboard:
    """Eight seconds in two shots; `shown` says from frame to (step, strength), `done` from step to its first frame."""
    strengths, completed = np.zeros((FRAMES, len(STEPS))), np.zeros((FRAMES, len(STEPS)))
    for frame, (step, strength) in (shown or {}).items():
        strengths[frame, step] = strength
    for step, first in (done or {}).items():
        completed[first:, step] = 1
    times, shots = np.arange(FRAMES) / 5, np.arange(FRAMES) // PER_SHOT
    return Storyboard(times, shots, strengths, completed, np.zeros((0, 2)), np.zeros((0, len(STEPS))))


def film(storyboard: Storyboard, options: RenderOptions = PLAIN, seed: int = 0) -> NDArray[np.int64]:
    """Shape (frames, height, width, 3)."""
    return np.array(list(draw_frames(storyboard, PROPS, options, np.random.default_rng(seed)))).astype(np.int64)


def differing(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.float64]:
    """Per frame, the share of pixels that clearly differ."""
    return (np.abs(one - other).max(axis=-1) > 20).mean(axis=(1, 2))


def test_what_is_performed_is_on_stage_while_it_is_performed() -> None:
    background = film(storyboard_with())
    for step in range(len(STEPS)):
        share = differing(film(storyboard_with(dict.fromkeys(range(5, 15), (step, 1.0)))), background)
        assert (share[5:15] > 0.04).all()
        assert (np.delete(share, slice(5, 15)) == 0).all()


def test_what_is_performed_moves_and_the_background_does_not() -> None:
    frames = film(storyboard_with(dict.fromkeys(range(PER_SHOT), (1, 1.0))))
    assert differing(frames[1:10], frames[:9]).mean() > 0.005
    assert (frames[PER_SHOT + 1 :] == frames[PER_SHOT]).all()
    cut = differing(frames[PER_SHOT : PER_SHOT + 1], film(storyboard_with())[:1])
    assert cut > 0.1, "another shot is another picture"


def test_what_stands_aside_does_not_move_and_is_smaller() -> None:
    background = film(storyboard_with())
    aside = film(storyboard_with(dict.fromkeys(range(PER_SHOT), (0, 0.6))))
    performed = film(storyboard_with(dict.fromkeys(range(PER_SHOT), (0, 1.0))))
    assert (aside[1:PER_SHOT] == aside[0]).all()
    assert 0 < differing(aside, background)[0] < differing(performed, background)[0]


def test_what_is_done_leaves_a_trace_of_its_own() -> None:
    options = replace(PLAIN, clutter=0)
    background = film(storyboard_with(), options)
    traces = []
    for step in range(len(STEPS)):
        frames = film(storyboard_with(done={step: 7}), options)
        assert (frames[:7] == background[:7]).all()
        assert (differing(frames, background)[7:] > 0.001).all()
        traces.append((frames - background)[-1])
    for one in range(len(STEPS)):
        for other in range(one):
            assert differing(traces[one][None], traces[other][None]) > 0.002


def test_a_done_thing_is_in_another_state() -> None:
    look = PROPS[0].objects[0]
    before, after = sprite(look, 12), sprite(look, 12, mark=(255.0, 0.0, 0.0))
    assert np.abs(before.paint - after.paint).max() > 60
    assert (np.abs(after.paint - [255.0, 0, 0]).max(axis=-1) < 1).sum() > 10, "its mark"


def test_things_look_the_same_in_all_videos_and_places_do_not() -> None:
    """The colours of the main object are there in every video, under its light; backgrounds have little in common."""
    places = [film(storyboard_with(), seed=seed)[0] for seed in range(6)]
    shown = [film(storyboard_with({0: (0, 1.0)}), seed=seed)[0] for seed in range(6)]
    red, green, blue = (c / max(PROPS[0].objects[0].colours[0]) for c in PROPS[0].objects[0].colours[0])
    for empty, full in zip(places, shown, strict=True):
        changed = full[np.abs(full - empty).max(axis=-1) > 20]
        hues = changed / np.maximum(1, changed.max(axis=-1, keepdims=True))
        assert (np.abs(hues - [red, green, blue]).max(axis=-1) < 0.3).mean() > 0.1
    for one in range(6):
        for other in range(one):
            assert differing(places[one][None], places[other][None]) > 0.5


def test_black_moments_come_at_cuts_only() -> None:
    frames = film(storyboard_with(), replace(PLAIN, black=1))
    black = (frames == 0).all(axis=(1, 2, 3))
    assert np.flatnonzero(black).tolist() == [PER_SHOT, PER_SHOT + 1]
    assert not (film(storyboard_with()) == 0).all(axis=(1, 2, 3)).any()


def test_clutter_and_grain() -> None:
    empty, full = (film(storyboard_with(), replace(PLAIN, clutter=count)) for count in (0, 20))
    assert differing(empty, full)[0] > 0.1
    noise = film(storyboard_with(), replace(PLAIN, grain=5))
    assert 3 < (noise[1:10] - noise[:9]).std() / np.sqrt(2) < 6


def test_two_steps_at_once_are_both_seen() -> None:
    both = storyboard_with({0: (0, 1.0)})
    both.shown[0, 2] = 1.0
    assert differing(film(both), film(storyboard_with({0: (0, 1.0)})))[0] > 0.03


# -- words and looks ----------------------------------------------------------------------------------------------


def test_steps_that_share_a_word_share_a_thing() -> None:
    fill, boil, stir = PROPS
    assert fill.objects[0] in boil.objects
    assert not {*fill.objects} & {*stir.objects}
    assert len({prop.tool for prop in PROPS}) == 3


@pytest.mark.parametrize("one", household_worlds(), ids=lambda one: one.name)
def test_every_word_has_its_own_look(one) -> None:  # type: ignore[no-untyped-def]
    steps = one.graph.steps
    props = draw_props(one.name, steps, seed=3)
    looks = {
        word: look
        for step, prop in zip(steps, props, strict=True)
        for word, look in zip(split_step_name(step)[1], prop.objects, strict=True)
    }
    assert len({(look.body, look.pattern) for look in looks.values()}) == len(looks)
    assert draw_props(one.name, steps[::-1], seed=3) == props[::-1], "the order of the steps means nothing"
    assert draw_props(one.name, steps, seed=4) != props


def test_names_without_words_of_their_own() -> None:
    assert split_step_name("!?") == ("!?", ("!?",))
    assert split_step_name("in the") == ("in the", ("in the",))
    assert split_step_name("step 07") == ("step", ("07",))


def test_long_names_show_all_their_things() -> None:
    (prop,) = draw_props("t", ["put " + " ".join(f"w{n}" for n in range(12))], seed=0)
    assert isinstance(prop, Prop)
    assert len(prop.objects) == 12


# -- sprites ------------------------------------------------------------------------------------------------------


@given(st.integers(0, 10_000), st.integers(2, 30), st.integers(0, TURNS - 1))
def test_mirrored_is_flipped_and_a_quarter_turn_is_a_quarter_turn(seed: int, radius: int, turn: int) -> None:
    look = draw_look(np.random.default_rng(seed))
    one, flipped = (sprite(look, radius, turn, mirrored) for mirrored in (False, True))
    assert np.allclose(flipped.paint, one.paint[:, ::-1], atol=0.01)
    assert np.allclose(flipped.veil, one.veil[:, ::-1], atol=1e-4)
    here, turned = (sprite(look, radius, which % TURNS).veil[..., 0] for which in (turn, turn + TURNS // 4))
    here = np.rot90(here, -1)
    assert (turned[here < 0.01] < 0.1).all()  # only the light falls from another side; what is covered stays so
    assert (here[turned < 0.01] < 0.1).all()
    assert (one.veil >= -1e-6).all()
    assert (one.veil <= 1).all()
    assert one.veil.dtype == one.paint.dtype == np.float32


@given(st.integers(-60, 100), st.integers(-60, 100), st.integers(1, 20))
def test_what_is_outside_is_cut(x: int, y: int, radius: int) -> None:
    drawn = sprite(Look("mug", "dots", ((200.0, 50.0, 10.0), (0.0, 0.0, 90.0))), radius)
    picture, larger = np.full((30, 40, 3), 100, np.float32), np.full((230, 240, 3), 100, np.float32)
    paste_sprite(picture, drawn, x, y)
    paste_sprite(larger, drawn, x + 100, y + 100)
    assert (picture == larger[100:130, 100:140]).all()


def test_there_are_enough_looks() -> None:
    looks = draw_distinct_looks([str(n) for n in range(65)], np.random.default_rng(0))
    assert len({(look.body, look.pattern) for look in looks.values()}) == 65


def test_motions_move() -> None:
    for name, motion in MOTIONS.items():
        poses = np.array([motion(time) for time in np.arange(0, 5, 0.2)])
        assert poses.std(axis=0).max() > 0.02, name
