"""Simulated features show what was performed and nothing else, as hard to see as asked, decided by the seed."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from msg2.errors import InputError
from msg2.formats.feature_store import VideoFeatures
from msg2.simulation import (
    Demonstration,
    NoiseOptions,
    Simulation,
    household_world,
    household_worlds,
    simulate,
    simulate_features,
    video_storyboard,
)
from msg2.simulation.simulated_features import FeatureOptions, common_words, content_words, draw_prototypes
from msg2.simulation.simulator import SimulationOptions
from msg2.task import Segment

PLAIN = FeatureOptions(width=64, clutter=0, blank=0, distractors=0, trace=0, off_topic=0, loose=0)
"""Nothing but the performed steps."""
NOISY = SimulationOptions(videos=30, noise=NoiseOptions(skipped=0.3, unlabelled=0.4))
COFFEE = simulate(household_world("Make Coffee"), NOISY, seed=4)


def frames_of(features: VideoFeatures, segment: Segment) -> NDArray[np.float32]:
    return features.frames[(features.frame_times >= segment.start) & (features.frame_times < segment.end)]


def background_of(features: VideoFeatures, demonstration: Demonstration) -> NDArray[np.bool_]:
    inside = [(features.frame_times >= s.start) & (features.frame_times < s.end) for s in demonstration.performed]
    return ~np.any(inside, axis=0) if inside else np.ones(len(features.frames), dtype=bool)


def mean_looks(simulation: Simulation, found: dict[str, VideoFeatures]) -> dict[str, NDArray[np.float32]]:
    """What each step looks like on average: learnt from the videos, as anybody would without knowing the prototypes."""
    seen: dict[str, list[NDArray[np.float32]]] = defaultdict(list)
    for demonstration in simulation.demonstrations:
        for segment in demonstration.performed:
            seen[segment.step].append(frames_of(found[demonstration.video], segment))
    return {name: np.concatenate(parts).mean(axis=0) for name, parts in seen.items()}


def test_a_step_looks_the_same_in_all_videos() -> None:
    found = simulate_features(COFFEE, PLAIN, seed=1)
    seen = defaultdict(list)
    for demonstration in COFFEE.demonstrations:
        for segment in demonstration.performed:
            seen[segment.step].extend(frames_of(found[demonstration.video], segment))
    assert seen.keys() == set(COFFEE.graph.steps)
    for frames in seen.values():
        assert len(frames) > 10
        assert np.linalg.norm(frames[0]) == pytest.approx(1)
        assert np.abs(np.array(frames) - frames[0]).max() < 1e-6


def test_what_was_performed_is_seen_labelled_or_not_and_what_was_skipped_is_not() -> None:
    options = replace(PLAIN, width=256, clutter=0.8)
    found = simulate_features(COFFEE, options, seed=1)
    looks = mean_looks(COFFEE, found)
    names = list(looks)
    unlabelled, skipped = 0, 0
    for demonstration in COFFEE.demonstrations:
        features = found[demonstration.video]
        nearest = (features.frames @ np.array(list(looks.values())).T).argmax(axis=1)[
            ~background_of(features, demonstration)
        ]
        visible = {names[n] for n in nearest.tolist()}
        assert visible == {s.step for s in demonstration.performed if len(frames_of(features, s))}
        unlabelled += len(visible & {s.step for s in demonstration.unlabelled})
        skipped += len(demonstration.skipped)
        assert not visible & demonstration.skipped
    assert unlabelled > 50
    assert skipped > 50


def test_labels_change_nothing() -> None:
    unlabelled = tuple(
        replace(demonstration, labels=(None,) * len(demonstration.performed)) for demonstration in COFFEE.demonstrations
    )
    assert_same(
        simulate_features(COFFEE, PLAIN, seed=1),
        simulate_features(replace(COFFEE, demonstrations=unlabelled), PLAIN, seed=1),
    )


def test_background_shows_no_step() -> None:
    found = simulate_features(COFFEE, PLAIN, seed=1)
    for demonstration in COFFEE.demonstrations:
        features = found[demonstration.video]
        assert not features.frames[background_of(features, demonstration)].any()
    cluttered = simulate_features(COFFEE, replace(PLAIN, clutter=3, scene=0, shot=0), seed=1)
    vision = draw_prototypes(COFFEE, PLAIN, seed=1).vision
    background = [
        f.frames[background_of(f, demonstration)]
        for demonstration in COFFEE.demonstrations
        for f in [cluttered[demonstration.video]]
    ]
    signal = np.concatenate(background) @ vision.T
    assert np.abs(signal.mean(axis=0)).max() < 5 / np.sqrt(64 * len(signal)), "more than chance"


def test_distractors_show_what_is_performed_at_another_time_and_never_what_is_skipped() -> None:
    options = replace(PLAIN, distractors=0.5, distractor_strength=0.6)
    shots, misleading, skipped, afterwards = 0, 0, 0, 0
    for demonstration in COFFEE.demonstrations:
        storyboard = video_storyboard(COFFEE, demonstration, options, seed=1)
        for shot in np.unique(storyboard.shots):
            shown = storyboard.shown[storyboard.shots == shot] == 0.6
            shots += 1
            misleading += bool(shown.any())
            assert shown.any(axis=0).sum() <= 1
            first = storyboard.frame_times[storyboard.shots == shot].min()
            for step in (COFFEE.graph.steps[n] for n in np.flatnonzero(shown.any(axis=0))):
                ends = [one.end for one in demonstration.performed if one.step == step]
                assert ends, "only what is performed in this video"
                afterwards += all(first > end for end in ends if end is not None)
        skipped += len(demonstration.skipped)
    assert 0.4 < misleading / shots < 0.55
    assert afterwards > 50
    assert skipped > 50


def test_blank_frames() -> None:
    found = simulate_features(COFFEE, replace(PLAIN, blank=0.25), seed=1)
    frames = np.concatenate(
        [
            frames_of(found[demonstration.video], s)
            for demonstration in COFFEE.demonstrations
            for s in demonstration.performed
        ]
    )
    assert 0.21 < 1 - frames.any(axis=1).mean() < 0.29


def test_things_done_stay_visible() -> None:
    options = replace(PLAIN, trace=0.5)
    found, done = simulate_features(COFFEE, options, seed=1), draw_prototypes(COFFEE, options, seed=1).done
    for demonstration in COFFEE.demonstrations[:5]:
        features = found[demonstration.video]
        for time, frame, background in zip(
            features.frame_times, features.frames, background_of(features, demonstration), strict=True
        ):
            completed = {s.step for s in demonstration.performed if s.end <= time}
            expected = done[[name in completed for name in COFFEE.graph.steps]].sum(axis=0)
            if background and completed:
                assert np.abs(frame - expected / np.linalg.norm(expected)).max() < 1e-6


def test_overlapping_steps_are_both_seen() -> None:
    simulation = simulate(
        household_world("Tie Tie"), SimulationOptions(videos=10, noise=NoiseOptions(overlapping=1)), seed=0
    )
    both = [
        video_storyboard(simulation, demonstration, PLAIN, 0).shown.sum(axis=1).max()
        for demonstration in simulation.demonstrations
    ]
    assert max(both) >= 2


def test_similar_names_look_alike() -> None:
    simulation = simulate(household_world("Jump Car"), SimulationOptions(videos=1), seed=0)
    steps = simulation.graph.steps
    alike = (steps.index("connect red to dead battery"), steps.index("connect red to good battery"))
    apart = (steps.index("connect red to dead battery"), steps.index("open hoods"))
    for shared, low, high in ((0.0, -0.15, 0.15), (0.5, 0.25, 0.6), (0.9, 0.6, 0.95)):
        prototypes = draw_prototypes(simulation, FeatureOptions(shared=shared), seed=0)
        for vectors in (prototypes.vision, prototypes.text):
            assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(steps)))
            assert low < vectors[alike[0]] @ vectors[alike[1]] < high
            assert abs(vectors[apart[0]] @ vectors[apart[1]]) < 0.2
    assert content_words("Pour the remaining beans") == ["pour", "remaining", "bean"]
    assert common_words(["open hoods", "close the hood", "sit in the car"]) == [{"hood"}, {"hood"}, set()]


def test_modalities_worlds_and_seeds_have_prototypes_of_their_own() -> None:
    options = FeatureOptions(shared=0)
    coffee, plant = (
        simulate(household_world(name), SimulationOptions(videos=1), 0) for name in ("Make Coffee", "Repot Plant")
    )
    drawn = [
        draw_prototypes(coffee, options, 0),
        draw_prototypes(coffee, options, 1),
        draw_prototypes(plant, options, 0),
    ]
    every = np.concatenate([array for p in drawn for array in (p.vision, p.text, p.done)])
    products = every @ every.T - np.eye(len(every))
    assert np.abs(products).max() < 0.25


def test_narration_speaks_of_what_was_performed() -> None:
    options = replace(PLAIN, narrated=1, shift_seconds=0)
    heard_unlabelled = 0
    for demonstration in COFFEE.demonstrations:
        storyboard = video_storyboard(COFFEE, demonstration, options, seed=1)
        assert storyboard.mentioned.sum(axis=1).max(initial=0) <= 1
        heard = {COFFEE.graph.steps[n] for n in np.flatnonzero(storyboard.mentioned.any(axis=0))}
        assert heard <= {s.step for s in demonstration.performed}
        heard_unlabelled += len(heard & {s.step for s in demonstration.unlabelled})
        for (start, end), row in zip(storyboard.sentence_times, storyboard.mentioned, strict=True):
            for n in np.flatnonzero(row):
                near = [s for s in demonstration.performed if s.step == COFFEE.graph.steps[n]]
                assert any(s.start - options.sentence_seconds <= end and start <= s.end + 3.5 for s in near)
    assert heard_unlabelled > 50


@pytest.mark.parametrize("silent", [{"narrated": 0.0}, {"narrated": 1.0, "off_topic": 1.0}])
def test_a_silent_narrator_mentions_steps_by_the_way_only(silent: dict[str, float]) -> None:
    def mentioned(loose: float) -> NDArray[np.float64]:
        options = replace(PLAIN, **silent, loose=loose)
        return np.concatenate(
            [video_storyboard(COFFEE, demonstration, options, 1).mentioned for demonstration in COFFEE.demonstrations]
        )

    assert not mentioned(0).any()
    assert mentioned(0.2).any(axis=0).all()
    assert 0.17 < mentioned(0.2).sum(axis=1).mean() < 0.23


def test_narration_comes_before_or_after() -> None:
    """One step in a long video: how far the sentences about it are from it spreads as asked."""
    demonstrations = tuple(Demonstration(f"v{i}", ("a",), (Segment("a", 200.0, 201.0),), ("a",)) for i in range(400))
    simulation = replace(
        simulate(household_world("Make Coffee"), SimulationOptions(videos=0), 0), demonstrations=demonstrations
    )
    simulation = replace(simulation, graph=type(simulation.graph)("t", ["a"], {}))
    options = replace(PLAIN, narrated=1, shift_seconds=10, sentence_seconds=0.5, after_seconds=100)
    distances = []
    for demonstration in demonstrations:
        storyboard = video_storyboard(simulation, demonstration, options, seed=0)
        spoken = storyboard.sentence_times[storyboard.mentioned[:, 0] > 0].mean()
        distances.append(spoken - 200.5)
    assert abs(np.mean(distances)) < 2
    assert 9 < np.std(distances) < 11


def assert_same(one: dict[str, VideoFeatures], other: dict[str, VideoFeatures]) -> None:
    assert one.keys() == other.keys()
    for video, features in one.items():
        for name in ("frame_times", "frames", "sentence_times", "sentences"):
            assert getattr(features, name).tobytes() == getattr(other[video], name).tobytes()


def test_the_seed_decides_and_more_videos_leave_the_earlier_ones() -> None:
    options = FeatureOptions(width=32)
    more = simulate(household_world("Make Coffee"), replace(NOISY, videos=40), seed=4)
    found = simulate_features(more, options, seed=1)
    first = {video: found[video] for video in list(found)[:30]}
    assert_same(first, simulate_features(COFFEE, options, seed=1))
    other = simulate_features(COFFEE, options, seed=2)
    assert not np.allclose(other["v00001"].frames, found["v00001"].frames)
    assert not np.allclose(found["v00001"].frames[:5], found["v00002"].frames[:5])
    with pytest.raises(InputError, match="the seed is -1"):
        simulate_features(COFFEE, options, seed=-1)


def test_clutter_hides_and_changes_nothing_else() -> None:
    vision = draw_prototypes(COFFEE, FeatureOptions(), seed=1).vision
    demonstration = COFFEE.demonstrations[0]
    alone = replace(COFFEE, demonstrations=(demonstration,))
    place = COFFEE.graph.steps.index(demonstration.performed[0].step)
    signals = []
    for clutter in (0.5, 1, 2, 4, 8, 16):
        options = FeatureOptions(clutter=clutter)
        frames = frames_of(simulate_features(alone, options, seed=1)[demonstration.video], demonstration.performed[0])
        signals.append(float((frames @ vision[place]).mean()))
    assert signals == sorted(signals, reverse=True)
    one, other = (video_storyboard(COFFEE, demonstration, FeatureOptions(clutter=c), seed=1) for c in (1, 9))
    assert (one.shown == other.shown).all()
    assert (one.mentioned == other.mentioned).all()


def test_shares_of_the_clutter() -> None:
    """Correlations between frames of one video: all of the clutter's share that stays."""
    nothing = Simulation(COFFEE.task, COFFEE.graph, (Demonstration("v", (), (), ()),))
    options = FeatureOptions(width=4096, distractors=0, after_seconds=400, scene=0.2, shot=0.3)
    features = simulate_features(nothing, options, seed=0)["v"]
    products, shot = features.frames @ features.frames.T, features.frame_times // options.shot_seconds
    same, itself = shot[:, None] == shot, np.eye(len(shot), dtype=bool)
    assert products[itself] == pytest.approx(np.ones(len(shot)))
    assert products[same & ~itself].mean() == pytest.approx(0.5, abs=0.03)
    assert products[~same].mean() == pytest.approx(0.2, abs=0.03)


@given(
    st.sampled_from([one.name for one in household_worlds()]),
    st.floats(0.2, 5),
    st.floats(0.5, 10),
    st.floats(0, 20),
    st.floats(0, 1),
    st.integers(0, 2**70),
)
def test_shapes_and_times(
    name: str, rate: float, sentence_seconds: float, after: float, skipped: float, seed: int
) -> None:
    simulation = simulate(household_world(name), SimulationOptions(videos=2, noise=NoiseOptions(skipped=skipped)), seed)
    options = FeatureOptions(
        width=3, frames_per_second=rate, sentence_seconds=sentence_seconds, after_seconds=after, scene=0.7, shot=0.3
    )
    found = simulate_features(simulation, options, seed)
    assert list(found) == [video.id for video in simulation.task]
    for demonstration in simulation.demonstrations:
        features, end = found[demonstration.video], max((s.end for s in demonstration.performed), default=0) + after
        assert features.frame_times[0] == 0
        assert np.diff(features.frame_times) == pytest.approx(1 / rate)
        assert end - 1 / rate - 1e-6 < features.frame_times[-1] <= end + 1e-6
        assert (features.sentence_times[1:, 0] == pytest.approx(features.sentence_times[:-1, 1])) or end == 0
        assert end < 1e-9 or features.sentence_times[-1, 1] >= end - 1e-6
        assert features.frames.shape[1] == features.sentences.shape[1] == 3
        assert (np.linalg.norm(features.frames, axis=1) < 1 + 1e-5).all()


@pytest.mark.parametrize(
    "wrong",
    [{"width": 0}, {"clutter": -1}, {"clutter": float("nan")}, {"blank": 1.5}, {"scene": 0.6, "shot": 0.6},
     {"frames_per_second": 0}, {"sentence_seconds": float("inf")}],
)  # fmt: skip
def test_options_that_make_no_sense(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        FeatureOptions(**wrong)  # type: ignore[arg-type]
