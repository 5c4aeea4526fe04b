"""Every option with its default: the only place where a default value is written.

Frozen dataclasses; the command line and the library build them from the names a user gives.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from msg2.errors import InputError

Delta: TypeAlias = float | Literal["auto"]
RecencyRule: TypeAlias = Literal["each", "satisfied"]

SEED = 0
"""Of everything that is drawn at random, unless another one is given."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How files become tasks."""

    repeats: Literal["first", "keep"] = "first"
    """A repeated step keeps its first segment, or all of them."""
    overlap: Literal["unordered", "start"] = "unordered"
    """Overlapping segments say nothing about order, or are ordered by their start."""
    order: Literal["file", "time"] | None = None
    """CaptainCook4D only: the order of the annotation file (the published protocol; None means this), or of time."""
    tier: str | None = None
    """ELAN only: the tier that holds the steps; None: the only one with annotations."""
    fps: float | None = None
    """CVAT and Label Studio only: frames per second of the videos, where the labels are in frames."""

    def __post_init__(self) -> None:
        _check(self.repeats in ("first", "keep"), f"repeats is {self.repeats!r}, it must be 'first' or 'keep'")
        _check(
            self.overlap in ("unordered", "start"), f"overlap is {self.overlap!r}, it must be 'unordered' or 'start'"
        )
        _check(self.order in ("file", "time", None), f"order is {self.order!r}, it must be 'file' or 'time'")
        _check(self.fps is None or 0 < self.fps <= 100_000, f"fps is {self.fps}, it must be above 0, at most 100000")


@dataclass(frozen=True, slots=True)
class SurveyOptions:
    """When times look wrong to `msg2 describe`."""

    long_video_hours: float = 6.0
    """A label that ends later than this is suspicious."""
    frames_hours: float = 1.0
    """Whole numbers throughout and a median video longer than this look like frames taken for seconds."""
    odd_ratio: float = 20.0
    """A video this many times longer than the task's median looks like another unit of time."""


@dataclass(frozen=True, slots=True)
class InferenceOptions:
    """Which method learns the graphs, whatever its own options."""

    method: str = "msg2"
    seed: int = SEED
    """Shuffles the folds with which δ "auto" is chosen."""
    jobs: int = 1
    """Tasks that the command line learns at the same time."""


@dataclass(frozen=True, slots=True)
class PrecisionOptions:
    """The paper's search (`msg2`); symbols as in App. B."""

    delta: Delta = "auto"
    """δ: a step is critical for another when its transition purity is above this."""
    alpha: float = 0.2
    """α: cost of one Boolean operation."""
    recency: float = 0.7
    """λ: weight lost per completed step in between; 1 switches recency off."""
    recency_rule: RecencyRule = "each"
    """Weight of a formula: from each literal's own recency (minimum for AND, maximum for OR), or from the moment the
    formula became satisfied (the paper's text)."""
    max_literals: int | None = 2
    """2 is the two-literal rule; None (or another number) is the paper's literal greedy search."""
    exclude_relatives: bool = False
    """Two-literal rule: the second literal may not be an ancestor or descendant of the first."""

    def __post_init__(self) -> None:
        _check_delta(self.delta)
        _check(0 <= self.alpha < float("inf"), f"alpha is {self.alpha}, it must be a number from 0 up")
        _check(0 < self.recency <= 1, f"recency is {self.recency}, it must be above 0 and at most 1")
        rules = get_args(RecencyRule)
        _check(self.recency_rule in rules, f"recency-rule is {self.recency_rule!r}, it must be {' or '.join(rules)}")
        limit = self.max_literals
        _check(limit is None or limit >= 1, f"max-literals is {limit}, it must be 1 or more, or none")


@dataclass(frozen=True, slots=True)
class DecisionOptions:
    """Decision trees on eligibility (`msgi` and `msgi+`): nothing to choose."""


@dataclass(frozen=True, slots=True)
class OrderOptions:
    """`always-before`: a before b in every video that orders them, or with purity above δ."""

    delta: Delta | None = None

    def __post_init__(self) -> None:
        if self.delta is not None:
            _check_delta(self.delta)


@dataclass(frozen=True, slots=True)
class LikelihoodOptions:
    """`likelihood`: how the search goes; none of it is a threshold of what is found."""

    levels: tuple[float, ...] = (0.0001, 0.02, 0.05, 0.1, 0.2, 0.4)
    """Probabilities of a disorderly choice; the share of videos at each level is learnt."""
    starts: tuple[float, ...] = (0.95, 0.8)
    """Climbs begin at the pairs that more than this share of the videos order alike, and at no order at all."""
    tried: int = 12
    """Pairs to add, and to remove, that are tried in earnest before each move: those that look best."""
    moves: int = 10_000
    """At most, in a climb."""
    videos: int = 120
    """Of more videos, so many serve for the climbs from all starts; the last climb is with all of them."""
    refit: float = 0.01
    """Nats that a new estimate of the noise, or a clause, must gain for the search to go on."""
    alone: int = 2
    """Times that each of several alternatives must have been enough without the others: once may be disorder."""


@dataclass(frozen=True, slots=True)
class DeltaOptions:
    """How δ is chosen from the data: by the likelihood of held-out videos."""

    grid: tuple[float, ...] = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.93, 0.96, 0.99)
    folds: int = 5
    held_out: int = 200
    """Folds are scored until this many held-out videos have been: many videos need fewer folds."""
    training: int = 1000
    """Most training videos per fold. Both bounds keep the time of the choice near that of learning the graph."""


@dataclass(frozen=True, slots=True)
class NextStepOptions:
    """Next-step prediction (App. C)."""

    ranker: str = "recency"
    """How steps are ranked: a name in `msg2.assist.RANKERS`."""
    rho: float = 0.9
    """ρ: discount per step since a step became eligible."""

    def __post_init__(self) -> None:
        _check(0 < self.rho <= 1, f"rho is {self.rho}, it must be above 0 and at most 1")


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    """The GRProp policy (Sohn et al., 2018; Sec. 5.2); all but λ have the values of a public implementation of it."""

    discount: float = 0.9
    """λ: reward lost per step since the precondition of a step was satisfied."""
    temperature: float = 200.0
    """T: how sharply the policy prefers the steepest reward."""
    or_share: float = 0.8
    """λ_or: share of its precondition in the progress of an incomplete step; the rest is its completion."""
    or_sharpness: float = 2.0
    """w_or: sharpness of the softened OR; 0 is the mean, infinity the maximum."""
    and_sharpness: float = 8.0
    """β_and: sharpness of the softened AND's lower bound at 0."""
    negative_weight: float = 3.0
    """w_and: how strongly a completed step blocks an AND that negates it."""

    def __post_init__(self) -> None:
        _check(0 < self.discount <= 1, f"discount is {self.discount}, it must be above 0 and at most 1")
        _check(0 < self.or_share < 1, f"or-share is {self.or_share}, it must be between 0 and 1")
        for name in ("temperature", "or_sharpness", "and_sharpness", "negative_weight"):
            value = getattr(self, name)
            _check(0 < value < float("inf"), f"{name.replace('_', '-')} is {value}, it must be a number above 0")


@dataclass(frozen=True, slots=True)
class SplitOptions:
    """Which videos are held out for testing (Sec. 5.2)."""

    test_share: float = 0.15
    seed: int = SEED

    def __post_init__(self) -> None:
        _check(0 < self.test_share < 1, f"test-share is {self.test_share}, it must be between 0 and 1")
        _check(self.seed >= 0, f"seed is {self.seed}, it must be 0 or more")


@dataclass(frozen=True, slots=True)
class EvidenceOptions:
    """What counts as little support."""

    weak_below: int = 5
    """An edge whose two steps are ordered in fewer videos than this is flagged as weak."""
    examples: int = 8
    """Videos in which a precondition held that are named; all in which it did not are."""


@dataclass(frozen=True, slots=True)
class NoiseOptions:
    """How simulated demonstrations differ from flawless, fully labelled ones; every rate is a probability.

    The defaults are calibrated: over the twelve household worlds about 29 % of the labels violate the true graph, as
    the paper found for ProceL (Sec. 3), mostly because steps were left out of the video or of its labels.
    """

    skipped: float = 0.08
    """Of each intended step: it is really not done, and the person goes on as if it were."""
    unlabelled: float = 0.2
    """Of each shown occurrence of a step: it is done, and the annotator does not label it."""
    swapped: float = 0.06
    """Of each two neighbours in the video, from left to right: the editor swaps them (a step is moved once)."""
    repeated: float = 0.05
    """Of each step that is done: it is done once more, at any later moment."""
    mislabelled: float = 0.02
    """Of each labelled occurrence: its label is that of another step of the task, any with equal chance."""
    overlapping: float = 0.0
    """Of each step after the first: it starts before the one before it has ended."""

    def __post_init__(self) -> None:
        for name in ("skipped", "unlabelled", "swapped", "repeated", "mislabelled", "overlapping"):
            _check_probability(name, getattr(self, name))

    @staticmethod
    def none() -> NoiseOptions:
        """Flawless demonstrations, completely labelled."""
        return NoiseOptions().scaled(0)

    def scaled(self, factor: float) -> NoiseOptions:
        """Every rate so many times as high, at most 1."""
        return NoiseOptions(**{rate.name: min(1.0, factor * getattr(self, rate.name)) for rate in fields(self)})


@dataclass(frozen=True, slots=True)
class WorldOptions:
    """How a world is demonstrated. Times are log-normal, about as long as CrossTask's annotations."""

    videos: int = 54
    """Demonstrations per task (the paper's ProceL: 54.5 on average)."""
    both_branches: float = 0.1
    """At an OR one branch is taken; the probability that another one is done as well."""
    step_seconds: float = 5.0
    """Median duration of a step."""
    step_spread: float = 1.0
    """Standard deviation of the logarithm of a step's duration."""
    gap_seconds: float = 6.0
    """Median length of the background before a step."""
    gap_spread: float = 1.5
    """Standard deviation of the logarithm of the background's length."""
    noise: NoiseOptions = field(default_factory=NoiseOptions)

    def __post_init__(self) -> None:
        _check(self.videos >= 0, f"videos is {self.videos}, it must be 0 or more")
        _check_probability("both-branches", self.both_branches)
        _check(0 < self.step_seconds < float("inf"), f"step-seconds is {self.step_seconds}, it must be above 0")
        _check(0 <= self.gap_seconds < float("inf"), f"gap-seconds is {self.gap_seconds}, it must be 0 or more")
        for name in ("step_spread", "gap_spread"):
            value = getattr(self, name)
            _check(0 <= value <= 3, f"{name.replace('_', '-')} is {value}, it must be between 0 and 3")


@dataclass(frozen=True, slots=True)
class FeatureOptions:
    """How simulated videos look and sound; lengths of vectors are relative to a step's prototype, which has length 1.

    `clutter` is the master difficulty. Its default was fixed before any model was trained: a linear classifier on
    single frames of performed steps recognises the step 60 % of the time (`msg2.experiments.probe`).
    """

    width: int = 512
    """Length of every vector."""
    shared: float = 0.5
    """Share of a prototype that steps with a word of their names in common have in common; the rest is its own."""
    clutter: float = 7.2
    """Length of all else in a frame or sentence: random directions, of the video, the shot and the moment."""
    scene: float = 0.25
    """Share of the clutter that stays through the video: the place, the speaker."""
    shot: float = 0.25
    """Share of a frame's clutter that stays through a shot."""
    shot_seconds: float = 4.0
    """Length of a shot; cuts do not care for steps."""
    frames_per_second: float = 1.0
    after_seconds: float = 5.0
    """The video goes on this long after its last step."""
    blank: float = 0.15
    """Of each frame of a performed step: nothing of the step is to be seen (a transition, a hand, a face)."""
    distractors: float = 0.15
    """Of each shot: it also shows what belongs to a step that is performed at another time of the video."""
    distractor_strength: float = 0.6
    """Length of a step's prototype where it is a distractor."""
    trace: float = 0.2
    """Things done stay visible: length of what a completed step leaves in every later frame; 0 leaves nothing."""
    sentence_seconds: float = 3.5
    """One sentence follows the other, each this long."""
    narrated: float = 0.7
    """Of each performed occurrence, labelled or not: the narrator speaks of it."""
    shift_seconds: float = 4.0
    """Standard deviation of the time by which its narration precedes or follows it."""
    off_topic: float = 0.3
    """Of each sentence: it is not about what is narrated then."""
    loose: float = 0.1
    """Of each sentence that is not about what is done then: it mentions a step that is performed at another time."""

    def __post_init__(self) -> None:
        _check(1 <= self.width <= 65_536, f"width is {self.width}, it must be between 1 and 65,536")
        for name in ("shared", "scene", "shot", "blank", "distractors", "narrated", "off_topic", "loose"):
            _check_probability(name.replace("_", "-"), getattr(self, name))
        _check(self.scene + self.shot <= 1, f"scene and shot are {self.scene} and {self.shot}, more than 1 together")
        for name in ("clutter", "distractor_strength", "trace", "after_seconds", "shift_seconds"):
            value = getattr(self, name)
            _check(0 <= value < float("inf"), f"{name.replace('_', '-')} is {value}, it must be a number from 0 up")
        for name in ("shot_seconds", "frames_per_second", "sentence_seconds"):
            value = getattr(self, name)
            _check(0 < value < float("inf"), f"{name.replace('_', '-')} is {value}, it must be a number above 0")


@dataclass(frozen=True, slots=True)
class ProbeOptions:
    """The linear classifier that measures how difficult simulated features are."""

    penalty: float = 1.0
    """λ of the ridge penalty λ/2 · |W|², beside the sum of the cross-entropies; the intercepts are free."""
    tolerance: float = 1e-4
    """The search ends when no slope of the mean objective per example is steeper."""

    def __post_init__(self) -> None:
        _check(0 < self.penalty < float("inf"), f"penalty is {self.penalty}, it must be a number above 0")
        _check(0 < self.tolerance < 1, f"tolerance is {self.tolerance}, it must be between 0 and 1")


@dataclass(frozen=True, slots=True)
class RandomWorldOptions:
    """The shape of a random world."""

    steps: int = 20
    depth: int = 5
    """Layer of the deepest step; steps without precondition are in layer 0."""
    or_rate: float = 0.2
    """Share of the preconditions that have an OR."""
    max_parents: int = 3
    """Most steps in a precondition."""

    def __post_init__(self) -> None:
        _check(self.depth >= 0, f"depth is {self.depth}, it must be 0 or more")
        _check(self.steps > self.depth, f"steps is {self.steps}, a depth of {self.depth} takes at least one more")
        _check(self.steps <= 100_000, f"steps is {self.steps}, it must be at most 100,000")
        _check_probability("or-rate", self.or_rate)
        least = 2 if self.or_rate > 0 else 1
        _check(self.max_parents >= least, f"max-parents is {self.max_parents}, it must be {least} or more")


@dataclass(frozen=True, slots=True)
class SamplingOptions:
    """Which frames and sentences of a video the state predictor sees (App. A)."""

    frames: Literal["segments", "video"] = "segments"
    """Frames are taken from the labelled segments only (the paper), or from the whole video, background included."""
    per_segment: int = 3
    """Frames per segment: at least so many in training, exactly so many, equidistant, in testing."""
    most_frames: int = 190
    """Frames per video in all."""
    sentences: int = 3
    """Consecutive sentences around each frame, the middle one nearest to it."""
    dropped: float = 0.25
    """In training, up to this share of a video's labels is dropped: they must be found without their borders."""
    always: bool = False
    """Exactly that share is dropped, at least one label, and not up to it."""

    def __post_init__(self) -> None:
        _check(self.frames in ("segments", "video"), f"frames is {self.frames!r}, it must be 'segments' or 'video'")
        _check(self.per_segment >= 1, f"per-segment is {self.per_segment}, it must be 1 or more")
        _check(self.most_frames >= 1, f"most-frames is {self.most_frames}, it must be 1 or more")
        _check(self.sentences >= 1 and self.sentences % 2 == 1,
               f"sentences is {self.sentences}, it must be odd: one in the middle")  # fmt: skip
        _check(0 <= self.dropped < 1, f"dropped is {self.dropped}, it must be 0 or more and below 1")


@dataclass(frozen=True, slots=True)
class StateModelOptions:
    """The state predictor (Sec. 4.1); every row of the paper's ablation is a value of these (see `VARIANTS`)."""

    inputs: Literal["fused", "vision", "text"] = "fused"
    """Frames enriched by sentences (the paper), frames alone, or sentences alone in the place of frames."""
    skip: bool = False
    """A skip connection around the fusion: the paper's "Vision + ASR"."""
    encoder: str = "google/t5-v1_1-large"
    """A T5, ViT or VisualBERT checkpoint by name or folder, or a size without weights such as "t5-small"."""
    direct: bool = False
    """VisualBERT only: frames and sentences are fed to it as they are, without fusion ("VisualBERT†")."""
    heads: int = 16
    """Attention heads of the fusion."""
    dropout: float = 0.1
    """Of the fusion; the encoder has its own."""
    threshold: float = 1.0
    """b: a step is not started below -b and completed above b (Eq. 4)."""
    in_progress: bool = True
    """Without it the first of the two losses is left out ("w/o in progress")."""
    witness: bool = False
    """Not in the paper: every token says which step it shows, and what was seen so far is added to the scores."""
    witness_dropout: float = 0.3
    """Of the features that the witness sees."""
    witness_l2: float = 0.005
    """Weight in the loss of the squared length of what the witness has learnt."""
    habits: bool = False
    """Not in the paper: which labels usually go along with which, and when; and whether a step is there at all."""
    habits_l2: float = 0.0001
    """Weight in the loss of the squared length of what the habits have learnt; ten times that for presence."""
    context: bool = True
    """Without it the transformer is left out: the witnesses and the habits are all there is."""

    def __post_init__(self) -> None:
        kinds = ("fused", "vision", "text")
        _check(self.inputs in kinds, f"inputs is {self.inputs!r}, it must be {' or '.join(kinds)}")
        _check(bool(self.encoder), "encoder is empty, it must name a checkpoint or a size")
        _check(not (self.skip and self.inputs != "fused"), "skip goes with fused inputs")
        _check(self.context or self.witness or self.habits, "without context there must be a witness or habits")
        _check(self.heads >= 1, f"heads is {self.heads}, it must be 1 or more")
        _check(0 <= self.dropout < 1, f"dropout is {self.dropout}, it must be 0 or more and below 1")
        _check(0 < self.threshold < float("inf"), f"threshold is {self.threshold}, it must be a number above 0")


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """How the state predictor is trained (App. A)."""

    epochs: int = 600
    batch: int = 32
    """Videos per step."""
    learning_rate: float = 3e-4
    witness_rate: float = 0.05
    """Learning rate of the witnesses, which have few weights and start at none."""
    warmup: int = 100
    """Steps until the learning rate is reached; from there it falls along a cosine."""
    clip: float = 1.0
    """Longest gradient."""
    validation: float = 0.15
    """Share of the videos that is kept for validation."""
    validate_every: int = 5
    """Epochs from one validation to the next."""
    patience: int | None = None
    """Validations without a better one until training stops early; None: never."""
    save_seconds: float = 30.0
    """At most this much work is lost when the training is killed."""
    seed: int = SEED
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """auto: a GPU where there is one."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """auto: mixed precision (bfloat16) on a GPU."""
    captured: bool = True
    """On a GPU, launch the kernels of a whole step at once, as a CUDA graph."""
    row: int | None = None
    """Least tokens of a row, which short videos share; 0: each has its own; None: they share where there is a
    transformer."""

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "validate_every"):
            value = getattr(self, name)
            _check(value >= 1, f"{name.replace('_', '-')} is {value}, it must be 1 or more")
        _check(0 < self.learning_rate < float("inf"), f"learning-rate is {self.learning_rate}, it must be above 0")
        _check(self.warmup >= 0, f"warmup is {self.warmup}, it must be 0 or more")
        _check(self.clip > 0, f"clip is {self.clip}, it must be above 0")
        _check(0 <= self.validation < 1, f"validation is {self.validation}, it must be 0 or more and below 1")
        _check(self.patience is None or self.patience >= 1, f"patience is {self.patience}, it must be 1 or more")
        _check(self.seed >= 0, f"seed is {self.seed}, it must be 0 or more")
        _check(self.device in ("auto", "cpu", "cuda"), f"device is {self.device!r}, it must be auto, cpu or cuda")
        _check(self.precision in ("auto", "float32", "bfloat16"),
               f"precision is {self.precision!r}, it must be auto, float32 or bfloat16")  # fmt: skip


@dataclass(frozen=True, slots=True)
class FillOptions:
    """How scores become labels (App. A, Ablation Study)."""

    threshold: float | None = None
    """A step is completed where its score is at least this. None: 0 (the paper); with witnesses b/2, half way from
    "in progress" to "completed"."""
    read_at: Literal["next", "same", "seen"] | None = None
    """The state at a step is read where the next one stands (the paper), or where the step itself stands; or a step is
    added when most was seen of it. None: seen with witnesses, otherwise next."""

    def __post_init__(self) -> None:
        _check(self.threshold is None or -float("inf") < self.threshold < float("inf"),
               f"threshold is {self.threshold}, it must be a number")  # fmt: skip
        _check(self.read_at in ("next", "same", "seen", None),
               f"read-at is {self.read_at!r}, it must be next, same or seen")  # fmt: skip

    def suited_to(self, model: StateModelOptions) -> FillOptions:
        """The same options, what is None chosen by the model."""
        threshold, read_at = (model.threshold / 2, "seen") if model.witness else (0.0, "next")
        return FillOptions(
            threshold if self.threshold is None else self.threshold,
            read_at if self.read_at is None else self.read_at,  # type: ignore[arg-type]
        )


@dataclass(frozen=True, slots=True)
class DrawOptions:
    """What pictures of a graph show."""

    reduce: bool = True
    """Draw the transitive reduction, which reads more easily, or the graph as it stands."""
    columns: int = 22
    """Characters per line of a label; deep graphs get narrower ones."""
    longest_label: int = 90
    """Characters of a label before it is cut with "…"; the full name is in the tooltip."""

    def __post_init__(self) -> None:
        _check(self.columns >= 8, f"columns is {self.columns}, it must be 8 or more")
        _check(self.longest_label >= 8, f"longest-label is {self.longest_label}, it must be 8 or more")


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """What `msg2 demo` shows."""

    world: str = "Make Coffee"
    seed: int = SEED
    folder: str = "msg2-demo"
    """Where its files go."""


@dataclass(frozen=True, slots=True)
class ExperimentOptions:
    """How often the experiments are repeated."""

    splits: int = 5
    """Seeded splits into training and test videos; the seeds are 0, 1, …"""
    world_seeds: int = 3
    """Simulations of every world; the seeds are 0, 1, …"""
    random_worlds: int = 20
    """Random worlds per setting."""
    jobs: int = 1
    """Cells of a table that are measured at the same time."""
    full: bool = False
    """The paper's sizes, in the place of ones for two cores."""
    quick: bool = False
    """A small part, to see that it runs: its numbers mean nothing."""
    folder: Path | None = None
    """Where what was measured is kept, so that an interrupted experiment goes on."""
    text_encoder: str = "words"
    """Of narration: hashed words, or the folder of a sentence encoder."""
    task: str | None = None
    """Of the figure of the search; None: that of `FigureOptions`."""
    step: str | None = None
    """Whose precondition is searched for; None: the last one of the task's graph."""

    @staticmethod
    def for_a_look() -> ExperimentOptions:
        """Once, where it matters many times."""
        return ExperimentOptions(splits=1, world_seeds=1, random_worlds=2, quick=True)


@dataclass(frozen=True, slots=True)
class NarrationOptions:
    """How models of states learn from real narration."""

    epochs: int = 100
    warmup: int = 20
    splits: int = 3
    """Seeded splits into training and test videos for the next step."""
    folds: int = 2
    """The labels of a training video are filled by a model of the other folds."""
    tasks: int | None = None
    """The first ones; None: all that have transcripts."""
    videos: int | None = None
    """Of each task, the first ones; None: all that are narrated."""

    @staticmethod
    def quick() -> NarrationOptions:
        """A small part of it."""
        return NarrationOptions(epochs=2, warmup=1, splits=1, tasks=1, videos=12)


@dataclass(frozen=True, slots=True)
class HidingOptions:
    """How the recovery of hidden steps is measured."""

    share: float = 0.25
    """Share of the labelled steps of a test video that are hidden."""
    folds: int = 5
    resamples: int = 1000
    """Bootstrap samples of the videos behind an interval."""
    confidence: float = 0.95
    """Coverage of the intervals."""
    seed: int = SEED

    def __post_init__(self) -> None:
        _check(0 < self.share < 1, f"share is {self.share}, it must be between 0 and 1")
        _check(self.folds >= 2, f"folds is {self.folds}, it must be 2 or more")
        _check(self.resamples >= 1, f"resamples is {self.resamples}, it must be 1 or more")
        _check(0 < self.confidence < 1, f"confidence is {self.confidence}, it must be between 0 and 1")


@dataclass(frozen=True, slots=True)
class BaselineOptions:
    """The regressions that a state predictor is measured against."""

    draws: int = 10
    """How often steps of each training video are hidden, as they will be in the test videos."""
    penalties: tuple[float, ...] = (1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3)
    """L2 penalties to choose from, the strongest first."""
    folds: int = 4
    """Of the training videos, for that choice."""
    sharpness: float = 20.0
    """How strongly the most similar sentences outweigh the others: weights are exp(sharpness · cosine)."""

    def __post_init__(self) -> None:
        _check(self.draws >= 1, f"draws is {self.draws}, it must be 1 or more")
        _check(self.folds >= 2, f"folds is {self.folds}, it must be 2 or more")


@dataclass(frozen=True, slots=True)
class TextOptions:
    """How sentences become vectors."""

    encoder: str = "words"
    """Hashed words, which need no model; or a sentence encoder: its folder, or its name on the Hugging Face hub."""
    width: int = 512
    """Of the vectors of hashed words; a sentence encoder has its own."""
    batch: int = 64
    """Sentences that a sentence encoder takes at once."""

    def __post_init__(self) -> None:
        _check(self.width >= 1, f"width is {self.width}, it must be 1 or more")
        _check(self.batch >= 1, f"batch is {self.batch}, it must be 1 or more")


LANGUAGE = "en"
"""Of the captions of a video that has them in several languages and none without a language in its name."""

VARIANT = "paper"
"""Of the state predictor, where it is trained by itself: a name in `msg2.states.variants.VARIANTS`."""


@dataclass(frozen=True, slots=True)
class StateEvaluationOptions:
    """How a state predictor is measured where nobody knows what was really performed."""

    draws: int = 10
    """How often labels of the held-out videos are hidden; the seeds are 0, 1, …"""

    def __post_init__(self) -> None:
        _check(self.draws >= 1, f"draws is {self.draws}, it must be 1 or more")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The whole way (`msg2 run`, `msg2 demo`): a state predictor that trains in seconds, then the usual inference."""

    variant: str = "witness"
    """A name in `msg2.states.variants.VARIANTS`."""
    encoder: str | None = None
    """The transformer, in the place of the variant's own."""
    epochs: int = 60
    warmup: int = 10
    """Steps; so short a training has no time for more."""
    method: str = "msg2"
    seed: int = SEED


@dataclass(frozen=True, slots=True)
class StatesExperimentOptions:
    """Of `msg2 experiment states`: how large its models are, and what it goes through; sized for two cores."""

    worlds: tuple[str, ...] | None = None
    """Names of household worlds; None: all twelve."""
    videos: int = 54
    """Demonstrations per world."""
    rendered: int = 6
    """Worlds, the first of them, of which `msg2 experiment rendered` draws videos: an hour on two cores."""
    seeds: tuple[int, ...] = (1, 2, 3)
    """Of the simulation, the features and the training. The thresholds of the witnesses were chosen on seed 0."""
    unlabelled: float = 0.25
    """Share of what is performed that nobody labels: a quarter."""
    clutters: tuple[float, ...] = (4.0, 7.2, 10.0)
    """The difficulties of the curve."""
    deltas: tuple[Delta, ...] = (0.96, 0.8, "auto")
    """With which graphs are learnt; 0.96 is the paper's for ProceL."""
    t5: str = "t5-tiny"
    visualbert: str = "visualbert-tiny"
    vit: str = "vit-tiny"
    transformers: TrainingOptions = field(
        default_factory=lambda: TrainingOptions(epochs=100, learning_rate=1e-3, warmup=20, patience=6, device="cpu")
    )
    """How models with a transformer are trained; the seed is the cell's."""
    witnesses: TrainingOptions = field(
        default_factory=lambda: TrainingOptions(epochs=60, warmup=10, validate_every=5, device="cpu")
    )
    """How models without one are."""
    resamples: int = 2000
    """Bootstrap samples behind an interval."""
    confidence: float = 0.95
    """Coverage of the intervals."""

    @staticmethod
    def of(options: ExperimentOptions) -> StatesExperimentOptions:
        """The size that was asked for."""
        if options.quick:
            brief = TrainingOptions(epochs=2, device="cpu")
            return StatesExperimentOptions(
                worlds=("Perform CPR",), videos=8, seeds=(1,), clutters=(7.2,), transformers=brief, witnesses=brief
            )
        return StatesExperimentOptions.full() if options.full else StatesExperimentOptions()

    @staticmethod
    def full() -> StatesExperimentOptions:
        """The paper's sizes, without weights, and its training (App. A); for a GPU."""
        return StatesExperimentOptions(
            t5="t5-large", visualbert="visualbert-base", vit="vit-large",
            transformers=TrainingOptions(save_seconds=3600.0),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """How rendered videos of a world look and sound. `clutter` is the master difficulty."""

    script: FeatureOptions = field(default_factory=FeatureOptions)
    """What is shown and said, and when; how long and cluttered its vectors are plays no part, nor its frame rate."""
    width: int = 160
    height: int = 120
    frames_per_second: int = 5
    clutter: int = 4
    """Things in every picture that belong to no step: half of them stay through the video, half through the shot."""
    grain: float = 3.0
    """Standard deviation of the sensor's noise, of 255."""
    blank_seconds: float = 1.0
    """Where nothing is to be seen of a performed step, it is so for this long."""
    black: float = 0.2
    """Of each cut from shot to shot: the picture is black for a moment."""
    black_seconds: float = 0.4
    quality: int = 30
    """x264's constant rate factor: 0 is lossless, 51 the worst."""
    sample_rate: int = 16_000
    """Of the sound, per second."""
    bit_rate: int = 24_000
    """Of the sound, bits per second."""
    words_per_minute: int = 170
    """How fast the narrator speaks, where there is time."""
    jobs: int = 1
    """Videos that are rendered at the same time."""

    def __post_init__(self) -> None:
        for name in ("width", "height"):
            value = getattr(self, name)
            _check(32 <= value <= 4096 and value % 2 == 0, f"{name} is {value}, it must be even, from 32 to 4096")
        for name, least, most in (
            ("frames_per_second", 1, 100), ("clutter", 0, 1000), ("quality", 0, 51), ("sample_rate", 8000, 48_000),
            ("bit_rate", 8000, 320_000), ("words_per_minute", 80, 450), ("jobs", 1, 1024),
        ):  # fmt: skip
            value = getattr(self, name)
            _check(least <= value <= most, f"{name.replace('_', '-')} is {value}, it must be from {least} to {most}")
        for name in ("grain", "black_seconds"):
            value = getattr(self, name)
            _check(0 <= value < 1000, f"{name.replace('_', '-')} is {value}, it must be from 0 to 1000")
        _check(0 < self.blank_seconds < float("inf"), f"blank-seconds is {self.blank_seconds}, it must be above 0")
        _check_probability("black", self.black)


@dataclass(frozen=True, slots=True)
class FrameOptions:
    """Which pictures of a video are looked at."""

    every: float = 0.5
    """Seconds from one to the next."""
    size: int = 224
    """Pixels of the shorter side, at most; a smaller picture is not enlarged."""
    hold: float = 3600.0
    """Seconds that one picture may stay; a clock that leaves more time between two pictures is broken."""
    threads: int = 4
    """That decode one video."""
    batch: int = 64
    """Pictures that are encoded at once, while as many are decoded."""

    def __post_init__(self) -> None:
        _check(0.001 <= self.every <= 3600, f"every is {self.every}, it must be from 0.001 to 3600 seconds")
        _check(self.size >= 1, f"size is {self.size}, it must be 1 or more")
        _check(0 < self.hold < float("inf"), f"hold is {self.hold}, it must be above 0")
        _check(self.threads >= 1, f"threads is {self.threads}, it must be 1 or more")
        _check(self.batch >= 1, f"batch is {self.batch}, it must be 1 or more")


@dataclass(frozen=True, slots=True)
class PictureOptions:
    """How pictures become vectors."""

    encoder: str = "descriptors"
    """Classical descriptors, which need no model; or a CLIP model: its folder, or its name on the Hugging Face hub."""
    batch: int = 32
    """Pictures that a model takes at once."""

    def __post_init__(self) -> None:
        _check(self.batch >= 1, f"batch is {self.batch}, it must be 1 or more")


@dataclass(frozen=True, slots=True)
class SpeechOptions:
    """How sound becomes text."""

    language: str | None = None
    """Such as "en"; None: as it is heard in the first half minute."""
    beam: int = 5
    """Hypotheses that are followed at the same time."""
    longest: float = 600.0
    """Seconds that are listened to at once; longer sound is cut where it is quiet, and memory stays bounded."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """auto: a GPU where there is one."""
    threads: int = 0
    """Of a CPU; 0: as many as the recogniser thinks right."""

    def __post_init__(self) -> None:
        _check(self.beam >= 1, f"beam is {self.beam}, it must be 1 or more")
        _check(self.longest >= 60, f"longest is {self.longest}, it must be 60 or more")
        _check(self.device in ("auto", "cpu", "cuda"), f"device is {self.device!r}, it must be auto, cpu or cuda")
        _check(self.threads >= 0, f"threads is {self.threads}, it must be 0 or more")


@dataclass(frozen=True, slots=True)
class PhraseOptions:
    """How sentences become verb phrases."""

    keep_sentences: bool = False
    """Keep sentences that have no verb phrase, as they are spoken."""
    longest: int = 5000
    """Characters that are parsed at once; longer narration is cut between words, and memory stays bounded."""

    def __post_init__(self) -> None:
        _check(self.longest >= 1, f"longest is {self.longest}, it must be 1 or more")


@dataclass(frozen=True, slots=True)
class ExtractionOptions:
    """From video files to features (`msg2 features`)."""

    frame_encoder: str = field(default_factory=lambda: PictureOptions().encoder)
    """See `PictureOptions`; "none": frames are not looked at."""
    text_encoder: str | None = None
    """See `TextOptions`; None: CLIP's own where frames go through CLIP, else hashed words."""
    speech: str | None = None
    """A Whisper model for videos without captions: its name or folder; None: they stay silent."""
    phrases: str | None = None
    """A spaCy model that finds verb phrases: its name or folder; None: sentences stay as they are."""
    frames: FrameOptions = field(default_factory=FrameOptions)
    wording: PhraseOptions = field(default_factory=PhraseOptions)
    listening: SpeechOptions = field(default_factory=SpeechOptions)


@dataclass(frozen=True, slots=True)
class SpokenOptions:
    """What is said around steps (`msg2 phrases`)."""

    seconds: float = 10.0
    """Before a step begins and after it ends that count as around it."""
    listed: int = 15
    """Phrases of a step on the page."""


@dataclass(frozen=True, slots=True)
class OnlineOptions:
    """How mistakes are told from habits, step by step (`msg2 check --online`)."""

    by_mistake: float = 0.05
    """How often a real requirement is broken, by a belief that counts as much as one clause of the graph does."""
    rounds: int = 50
    """Of expectation maximisation, with which the videos correct that belief."""
    threshold: float = 0.5
    """Operating point: a step is called a mistake from this probability on. Where both errors cost the same, 0.5 is the
    point with the fewest of them, whatever the data; where a missed mistake costs c false alarms, it is 1 / (1 + c)."""

    def __post_init__(self) -> None:
        _check(0 < self.by_mistake <= 0.5, f"by-mistake is {self.by_mistake}, it must be above 0 and at most 0.5")
        _check(self.rounds >= 1, f"rounds is {self.rounds}, it must be 1 or more")
        _check_probability("threshold", self.threshold)


@dataclass(frozen=True, slots=True)
class BootstrapOptions:
    """How sure a graph is: it is learnt again from videos drawn with replacement (`msg2 infer --samples`)."""

    samples: int = 200
    """Graphs that are learnt; 200 tell a probability of 0.9 to about ± 0.04."""
    confidence: float | None = None
    """Clauses that hold in a smaller share of the samples are dropped; None: nothing is."""

    def __post_init__(self) -> None:
        _check(1 <= self.samples <= 1_000_000, f"samples is {self.samples}, it must be 1 to 1,000,000")
        if self.confidence is not None:
            _check_probability("confidence", self.confidence)


@dataclass(frozen=True, slots=True)
class CalibrationOptions:
    """How probabilities of the bootstrap are compared with the truth (`msg2 experiment calibration`)."""

    worlds: int = 10
    """Random worlds; the seeds are 0, 1, …"""
    videos: int = 20
    """Of each world."""
    samples: int = 50
    bins: int = 10
    world: RandomWorldOptions = field(default_factory=lambda: RandomWorldOptions(steps=12, depth=4, or_rate=0.25))

    @staticmethod
    def quick() -> CalibrationOptions:
        """A small part of it."""
        return CalibrationOptions(worlds=1, samples=5)


@dataclass(frozen=True, slots=True)
class NoiseCurveOptions:
    """How noise and the number of videos are varied (`msg2 experiment noise`)."""

    factors: tuple[float, ...] = (0.0, 0.5, 1.0, 1.5, 2.0)
    """Times the usual noise."""
    videos: tuple[int, ...] = (5, 20, 54, 150)
    random_worlds: int = 12
    """Beside the twelve household worlds; the seeds are 0, 1, …"""
    world: RandomWorldOptions = field(default_factory=lambda: RandomWorldOptions(steps=15, depth=5, or_rate=0.3))

    @staticmethod
    def quick() -> NoiseCurveOptions:
        """A minute's part of it."""
        return NoiseCurveOptions(factors=(0.0, 1.0), videos=(5, 20), random_worlds=2)


@dataclass(frozen=True, slots=True)
class RoleOptions:
    """When steps count as optional, or as taking each other's place."""

    exactly_one: float = 0.9
    """Share of the videos with any of the interchangeable steps that show exactly one of them, at least."""
    significance: float = 0.01
    """Chance, over all steps of a task (Bonferroni), to call a step optional; over all pairs, interchangeable."""

    def __post_init__(self) -> None:
        for name in ("exactly_one", "significance"):
            _check_probability(name.replace("_", "-"), getattr(self, name))


@dataclass(frozen=True, slots=True)
class ForecastOptions:
    """The learned next-step model, and how far it looks ahead."""

    likeness: float = 0.3
    """κ: what a past situation weighs per difference from the present one, in the choice among similar ones."""
    term_penalties: tuple[float, ...] = (30.0, 10.0, 3.0)
    """λ_T: of each step's own answer to what was done; the best for held-out videos is taken."""
    weight_penalties: tuple[float, ...] = (30.0,)
    """λ_w: of the weights that all steps share."""
    folds: int = 5
    """Of the videos: for the penalties, and for counts that a situation is not part of."""
    most_videos: int = 500
    """More than these are thinned out evenly."""
    beam: int = 200
    """Continuations that are followed at once; more make probabilities several steps ahead exact."""
    interval: tuple[float, float] = (0.1, 0.9)
    """Quantiles of the seconds to the next step that are given beside the median."""
    sharpness: float = 2.0
    """How much more alike step names count than half alike ones, where a task borrows from others."""
    lent_penalty: float = 3.0
    """λ_w of the weights that other tasks lend."""
    rehearsals: int = 40
    """Videos per task on which the weights that it lends are tried."""
    gaps: int = 9
    """Pairs of steps that were seen fewer times than this get the waiting time after the last step alone: the next of
    n gaps is between the shortest and the longest with probability (n − 1) / (n + 1)."""

    def __post_init__(self) -> None:
        _check(0 < self.likeness < 1, f"likeness is {self.likeness}, it must be between 0 and 1")
        for name in ("term_penalties", "weight_penalties"):
            values = getattr(self, name)
            _check(bool(values) and min(values) > 0, f"{name.replace('_', '-')} are {values}, they must be above 0")
        for name, least in (("folds", 2), ("most_videos", 2), ("beam", 1), ("gaps", 1)):
            value = getattr(self, name)
            _check(value >= least, f"{name.replace('_', '-')} is {value}, it must be {least} or more")
        low, high = self.interval
        _check(0 <= low <= high <= 1, f"interval is {self.interval}, it must be two quantiles from 0 to 1")


@dataclass(frozen=True, slots=True)
class TransferOptions:
    """The learning curve with and without other tasks (`msg2 experiment transfer`)."""

    sizes: tuple[int, ...] = (5, 10, 20, 40)
    """Training videos; after these, all there are."""
    splits: int = 5
    """Seeded splits into training and test videos; the seeds are 0, 1, …"""

    @staticmethod
    def quick() -> TransferOptions:
        """A small part of it."""
        return TransferOptions(sizes=(5,), splits=1)


@dataclass(frozen=True, slots=True)
class ForeseeingOptions:
    """Transformers that foresee the next step from what was shown and said (`msg2 experiment video-next-step`)."""

    frames: int = 3
    """Of each step that is done: equidistant, in training at random (App. C)."""
    around: int = 3
    """Sentences around each frame that are fused with it; odd, the middle one is nearest to it."""
    heard: int = 12
    """Sentences since the last step began, at most; 0: the text-and-label transformer does not listen."""
    labels: bool = True
    """Whether frames are told the step that they show."""
    width: int = 32
    layers: int = 2
    """Of attention over time, or over the tokens of the text-and-label transformer."""
    spatial_layers: int = 1
    """Of ViViT's attention within a frame."""
    heads: int = 4
    dropout: float = 0.3
    weight_decay: float = 0.1
    training: TrainingOptions = field(
        default_factory=lambda: TrainingOptions(
            epochs=40, batch=64, learning_rate=1e-3, warmup=20, validate_every=1, patience=8, device="cpu"
        )
    )
    """A batch is of moments here; patience is with the loss on videos that are kept for validation."""

    def __post_init__(self) -> None:
        _check(self.heard >= 0, f"heard is {self.heard}, it must be 0 or more")
        for name in ("frames", "layers", "spatial_layers", "heads"):
            value = getattr(self, name)
            _check(value >= 1, f"{name.replace('_', '-')} is {value}, it must be 1 or more")
        _check(self.around >= 1 and self.around % 2 == 1, f"around is {self.around}, it must be odd")
        _check(self.width >= 1 and self.width % self.heads == 0,
               f"width is {self.width}, it must be a multiple of the {self.heads} heads")  # fmt: skip
        _check(0 <= self.dropout < 1, f"dropout is {self.dropout}, it must be 0 or more and below 1")
        _check(self.weight_decay >= 0, f"weight-decay is {self.weight_decay}, it must be 0 or more")


@dataclass(frozen=True, slots=True)
class VideoNextStepOptions:
    """What the rows of `msg2 experiment video-next-step` are learnt with."""

    network: ForeseeingOptions = field(default_factory=ForeseeingOptions)
    filling: NarrationOptions = field(default_factory=NarrationOptions)
    """Of the state predictor that fills labels up for the full MSG²."""

    @staticmethod
    def quick() -> VideoNextStepOptions:
        """A minute's part of it."""
        brief = replace(ForeseeingOptions().training, epochs=2)
        return VideoNextStepOptions(ForeseeingOptions(training=brief), NarrationOptions(epochs=2, warmup=1))


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Labels written for other tools."""

    media: str = "{video}.mp4"
    """Where the tool finds a video: a path or URL, with the id of the video for `{video}`."""
    fps: float | None = None
    """Frames per second, for Label Studio: labels in frames of the picture; None: in seconds along the sound."""

    def __post_init__(self) -> None:
        rate = self.fps
        _check(rate is None or 0 < rate < float("inf"), f"fps is {rate}, it must be a number above 0")

    def media_of(self, video: str) -> str:
        """The path or URL of a video."""
        return self.media.replace("{video}", video)


@dataclass(frozen=True, slots=True)
class DownloadOptions:
    """How public annotation sets are fetched, and what is refused."""

    folder: str = "datasets"
    timeout: float = 30.0
    """Seconds without an answer after which a connection is given up."""
    attempts: int = 4
    """Connections that are tried for a file; each goes on where the one before it broke off."""
    pause: float = 2.0
    """Seconds before the next one."""
    most_bytes: int = 1_000_000_000
    """Of a file, or of all that an archive unpacks to."""
    most_files: int = 100_000
    """In an archive."""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The local web app (`msg2 serve`). One process works on one thing, and none takes more than its share."""

    folder: Path = Path("msg2-work")
    """Where uploads, jobs and graphs are kept, as plain files."""
    host: str = "127.0.0.1"
    """The address to listen at; one that others can reach needs a token."""
    port: int = 8765
    """0 takes any that is free."""
    token: str | None = None
    """What a visitor has to know; None lets everybody in who can reach the address."""
    workers: int = 2
    """Jobs at the same time."""
    answers: int = 8
    """Other requests at the same time; each has a process of its own, so that slow ones do not hold up the rest."""
    job_seconds: float = 600.0
    """A job that takes longer, or the reading of an upload, is ended."""
    answer_seconds: float = 30.0
    """A question of the JSON API that takes longer is ended."""
    megabytes: int = 4096
    """Of address space, for one process."""
    upload_megabytes: int = 200
    """The largest upload."""
    unpacked_megabytes: int = 1000
    """The most that the files of an uploaded archive may hold together."""
    body_megabytes: int = 20
    """The largest body of any other request."""
    waiting: int = 1000
    """Jobs that may wait; more are turned away."""
    attempts: int = 3
    """Times that a job is begun, where the server is stopped in the middle of it."""

    def __post_init__(self) -> None:
        _check(0 <= self.port <= 65535, f"port is {self.port}, it must be 0 to 65535")
        token = self.token
        _check(
            token is None or (len(token) >= 16 and token.isascii() and token.isprintable() and " " not in token),
            "the token must be 16 or more letters and digits, such as from `openssl rand -hex 16`",
        )
        _check(
            token is not None or self.host in ("127.0.0.1", "::1", "localhost"),
            f"at the address {self.host} others can reach the app: this needs a token",
        )
        for name in ("workers", "answers", "job_seconds", "answer_seconds", "megabytes", "upload_megabytes"):
            value = getattr(self, name)
            _check(value > 0, f"{name.replace('_', '-')} is {value}, it must be above 0")


@dataclass(frozen=True, slots=True)
class WordingOptions:
    """`wording`: an order from the names of the steps alone."""

    likeness: float = 0.15
    """Cosine from which two names speak of the same thing: about one word in common of three or four."""

    def __post_init__(self) -> None:
        _check(0 < self.likeness <= 1, f"likeness is {self.likeness}, it must be above 0 and at most 1")


@dataclass(frozen=True, slots=True)
class ScriptOptions:
    """The text-to-text model of scripts (`msg2 scripts`): how it is fine-tuned, and how it is read."""

    base: str = "google-t5/t5-large"
    """A T5 checkpoint: its folder, or its name on the Hugging Face hub."""
    epochs: int = 20
    batch: int = 16
    """Scripts per step."""
    learning_rate: float = 1e-4
    warmup: int = 100
    """Steps until the learning rate is reached; from there it falls along a cosine."""
    clip: float = 1.0
    """Longest gradient."""
    seed: int = SEED
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """auto: a GPU where there is one."""
    beams: int = 4
    """Orders that are followed at the same time when one is written."""
    edges_per_step: int = 4
    """Longest order that is written; in proScript there is about one edge per step."""

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "beams", "edges_per_step"):
            value = getattr(self, name)
            _check(value >= 1, f"{name.replace('_', '-')} is {value}, it must be 1 or more")
        _check(0 < self.learning_rate < float("inf"), f"learning-rate is {self.learning_rate}, it must be above 0")
        _check(self.warmup >= 0, f"warmup is {self.warmup}, it must be 0 or more")
        _check(self.clip > 0, f"clip is {self.clip}, it must be above 0")
        _check(self.seed >= 0, f"seed is {self.seed}, it must be 0 or more")
        _check(self.device in ("auto", "cpu", "cuda"), f"device is {self.device!r}, it must be auto, cpu or cuda")


def _check(good: bool, what: str) -> None:
    if not good:
        raise InputError(what)


def _check_delta(delta: Delta) -> None:
    _check(delta == "auto" or (isinstance(delta, (int, float)) and 0 <= delta <= 1),
           f"delta is {delta}, it must be between 0 and 1, or auto")  # fmt: skip


def _check_probability(name: str, value: float) -> None:
    _check(0 <= value <= 1, f"{name} is {value}, it must be between 0 and 1")


@dataclass(frozen=True, slots=True)
class FigureOptions:
    """Of `msg2 experiment figures`: what the pictures are of; those of the paper, where it names any."""

    worlds: tuple[str, ...] = ("Perform CPR", "Assemble Clarinet")
    """Whose learnt graphs are drawn beside the true one."""
    methods: tuple[str, ...] = ("msgi+", "always-before", "msg2", "likelihood")
    completion: str = "Tie Tie"
    """The world of the video whose unlabelled steps are filled in."""
    search: str = "Repot Plant"
    """The world of the step whose precondition is searched for."""
    candidates: int = 12
    """At most, in a round of the search."""
    seed: int = SEED
