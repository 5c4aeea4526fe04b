"""The model of scripts in miniature: a T5 from its configuration, with a tokenizer that is made here."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import networkx
import pytest
import tokenizers
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

from experiments.scripts.order_grammar import OrderGrammar
from experiments.scripts.proscript import Edge, Script
from experiments.scripts.script_model import CARD, ScriptModel
from experiments.scripts.script_options import ScriptOptions
from experiments.scripts.script_training import train
from msg2.errors import InputError
from msg2.graph import SubtaskGraph
from msg2.task import Segment, Task, Video

TEA = Script("tea", ("drink", "boil"), ((1, 0),))
BATH = Script("bath", ("bathe", "fill"), ((1, 0),))
POST = Script("letter", ("write", "post"), ((0, 1),))
SCRIPTS = [TEA, BATH, POST]
QUICK = ScriptOptions(epochs=3, batch=2, learning_rate=1e-2, warmup=2, device="cpu", beams=2)


WORDS = ["step", "->", ";", ":", *"0123456789", *{word: 0 for one in SCRIPTS for word in (one.scenario, *one.events)}]


def tokenizer() -> PreTrainedTokenizerFast:
    """Words, and the digits of numbers: as with T5's own, "step12" is several tokens."""
    vocabulary = {word: number for number, word in enumerate(["<pad>", "</s>", "<unk>", *WORDS])}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="<unk>"))
    pattern = tokenizers.Regex(r"[a-z]+|\d|->|\S")
    made.pre_tokenizer = tokenizers.pre_tokenizers.Split(pattern, "removed", invert=True)
    made.post_processor = tokenizers.processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="</s>", unk_token="<unk>")


def base(folder: Path, seed: int = 0, scale: float = 1.0, dropout: float = 0.1) -> Path:
    """An untrained model; a larger `scale` makes it surer of what it has no reason to be sure of."""
    torch.manual_seed(seed)
    config = T5Config(
        vocab_size=40, d_model=32, d_ff=64, d_kv=8, num_layers=2, num_heads=4, dropout_rate=dropout,
        decoder_start_token_id=0, pad_token_id=0, eos_token_id=1, initializer_factor=scale,
    )  # fmt: skip
    T5ForConditionalGeneration(config).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return base(tmp_path_factory.mktemp("base") / "t5")


def options(path: Path, **changes: Any) -> ScriptOptions:
    return ScriptOptions(**{**{name: getattr(QUICK, name) for name in QUICK.__slots__}, "base": str(path), **changes})


# -- the grammar ------------------------------------------------------------------------------------------------------


def letters(text: str) -> list[int]:
    return list(text.encode())


@given(st.integers(1, 12), st.integers(1, 40), st.randoms(use_true_random=False))
def test_whoever_keeps_to_the_grammar_writes_a_partial_order(steps: int, most: int, randomness) -> None:
    grammar = OrderGrammar.of(steps, letters, end=0, most=most)
    tokens: list[int] = []
    while tokens[-1:] != [0]:
        tokens.append(randomness.choice(grammar.allowed_tokens(tokens)))
    check_order(grammar.decode_edges(tokens), steps)
    assert len(grammar.decode_edges(tokens)) <= most
    assert grammar.encode_edges(grammar.decode_edges(tokens)) == tokens


def check_order(edges: list[Edge], steps: int) -> None:
    """Only the given steps, no edge that was known already, no circle."""
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(steps))
    for first, second in edges:
        assert {first, second} <= set(range(steps))
        assert not networkx.has_path(graph, first, second)
        graph.add_edge(first, second)
        assert networkx.is_directed_acyclic_graph(graph)


@given(st.integers(2, 8).flatmap(lambda n: st.tuples(st.just(n), st.permutations(range(n)), st.data())))
def test_every_partial_order_can_be_written(drawn) -> None:
    steps, hidden, more = drawn
    pairs = [(a, b) for place, a in enumerate(hidden) for b in hidden[place + 1 :]]
    script = Script("t", ("e",) * steps, tuple(more.draw(st.lists(st.sampled_from(pairs)))))
    grammar = OrderGrammar.of(steps, letters, end=0, most=steps * steps)
    tokens = grammar.encode_edges(script.reduced_edges())
    assert all(token in grammar.allowed_tokens(tokens[:place]) for place, token in enumerate(tokens))
    assert grammar.decode_edges([*tokens, 0, 0]) == script.reduced_edges()


def test_when_all_is_said_only_the_end_is_left() -> None:
    grammar = OrderGrammar.of(3, letters, end=0, most=9)
    assert grammar.allowed_tokens(grammar.encode_edges([(0, 1), (1, 2)])[:-1]) == [0]
    assert grammar.allowed_tokens([]) == [0, ord("s")]
    assert bytes(grammar.allowed_tokens([*grammar.encode_edges([(0, 1)])[:-1], *b"step1->step"])) == b"2"


def test_tokens_that_cannot_tell_steps_apart_are_refused() -> None:
    with pytest.raises(InputError, match="cannot tell 3 steps apart"):
        OrderGrammar.of(3, lambda text: [1], end=0, most=9)
    with pytest.raises(ValueError, match="no edge"):
        OrderGrammar.of(3, letters, end=0, most=9).decode_edges(b"step1->")


# -- the model --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
@pytest.mark.parametrize("endless", [False, True])
def test_whatever_the_weights_the_order_is_valid(seed: int, endless: bool, tmp_path: Path) -> None:
    model, most = ScriptModel(base(tmp_path, seed, scale=10.0)), 1 + seed % 3
    if endless:  # it would never stop if it were not made to
        model.model.lm_head.register_forward_hook(lambda *given: given[-1] - 1e4 * torch.eye(40)[1])
    for steps, beams in ((1, 3), (2, 1), (2, 4), (5, 3), (12, 1), (12, 2)):
        asked = Script("do it", tuple(f"part {number}" for number in range(steps)))
        found = model.order(asked, options(tmp_path, beams=beams, edges_per_step=most))
        check_order(found, steps)
        assert len(found) <= most * steps
        if endless:
            assert len(found) == most * steps or all_related(found, steps)


def all_related(edges: list[Edge], steps: int) -> bool:
    """Whether nothing is left to be said: of any two steps one comes before the other."""
    closed = networkx.transitive_closure_dag(networkx.DiGraph(edges))
    return closed.number_of_edges() == steps * (steps - 1) / 2


def test_a_beam_finds_the_most_probable_order(untrained: Path) -> None:
    """Against all orders of two steps, their probabilities by hand."""
    model = ScriptModel(untrained)
    grammar = model.grammar(2, QUICK)

    def probability(edges: list[Edge]) -> float:
        tokens, total = grammar.encode_edges(edges), 0.0
        with torch.no_grad():
            logits = model.model(
                **model.questions([Script("do it", ("a", "b"))]), decoder_input_ids=torch.tensor([[0, *tokens[:-1]]])
            ).logits[0]
        for place, token in enumerate(tokens):
            allowed = grammar.allowed_tokens(tokens[:place])
            total += float(torch.log_softmax(logits[place, allowed], 0)[allowed.index(token)])
        return total

    best = max(([], [(0, 1)], [(1, 0)]), key=probability)
    assert model.order(Script("do it", ("a", "b")), options(untrained, beams=4)) == best


def test_a_graph_has_the_steps_of_the_task_and_no_videos(untrained: Path) -> None:
    task = Task("tea", ["pour", "boil"], [Video("v", [Segment("boil")])])
    graph = ScriptModel(untrained).graph(task, QUICK)
    assert isinstance(graph, SubtaskGraph)
    assert set(graph.steps) == {"pour", "boil"}
    assert graph.method["videos"] == []
    assert "/" not in json.dumps(dict(graph.method))
    assert graph.dumps() == ScriptModel(untrained).graph(task.with_videos([]), QUICK).dumps()


# -- training ---------------------------------------------------------------------------------------------------------


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("learnt")
    chosen = options(base(folder / "base", dropout=0.0), epochs=80, batch=12, learning_rate=5e-3, warmup=50)
    card = train(SCRIPTS * 16, folder / "model", chosen)
    assert card.losses[-1] < 0.05 < card.losses[0]
    return folder / "model"


@pytest.mark.slow
def test_three_scripts_are_learnt_by_heart(learnt: Path) -> None:
    model = ScriptModel(learnt)
    for script in SCRIPTS:
        assert set(model.order(Script(script.scenario, script.events), QUICK)) == set(script.reduced_edges())
        turned = script.renumber(range(len(script.events))[::-1])
        assert set(model.order(Script(turned.scenario, turned.events), QUICK)) == set(turned.reduced_edges())


def test_what_was_saved_is_what_is_loaded(learnt: Path, tmp_path: Path) -> None:
    elsewhere = Path(shutil.copytree(learnt, tmp_path / "copy"))
    one, other = ScriptModel(learnt), ScriptModel(elsewhere)
    assert one.fingerprint == other.fingerprint
    task = Task("tea", TEA.events, [])
    assert one.graph(task, QUICK).dumps() == other.graph(task, QUICK).dumps()
    assert not list(learnt.glob("last-*"))


def test_an_interrupted_training_ends_like_one_that_was_not(untrained: Path, tmp_path: Path) -> None:
    chosen = options(untrained)
    whole = train(SCRIPTS, tmp_path / "whole", chosen)

    def stop(done: int, total: int | None, message: str) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(SCRIPTS, tmp_path / "parts", chosen, stop)
    with pytest.raises(InputError, match="its training has not come to its end"):
        ScriptModel(tmp_path / "parts")
    seen: list[int] = []
    assert train(SCRIPTS, tmp_path / "parts", chosen, lambda done, total, message: seen.append(done)) == whole
    assert seen == [3]
    assert weights(tmp_path / "parts") == weights(tmp_path / "whole")
    before = weights(tmp_path / "whole")
    assert train(SCRIPTS, tmp_path / "whole", chosen, seen.append) == whole  # type: ignore[arg-type]
    assert (seen, weights(tmp_path / "whole")) == ([3], before)


def test_the_seed_decides(untrained: Path, tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        train(SCRIPTS, tmp_path / name, options(untrained, epochs=1, seed=seed))
    assert weights(tmp_path / "a") == weights(tmp_path / "b") != weights(tmp_path / "c")


def test_another_training_is_not_taken_up(untrained: Path, tmp_path: Path) -> None:
    train(SCRIPTS, tmp_path / "m", options(untrained, epochs=1))
    for scripts, chosen in ((SCRIPTS[:2], {}), (SCRIPTS, {"seed": 5}), (SCRIPTS, {"epochs": 2})):
        with pytest.raises(InputError, match="holds another training"):
            train(scripts, tmp_path / "m", options(untrained, **{"epochs": 1, **chosen}))
    with pytest.raises(InputError, match="holds another training"):
        train(SCRIPTS, tmp_path / "m", options(tmp_path / "m", epochs=1))
    with pytest.raises(InputError, match="holds another model"):
        train(SCRIPTS, untrained, options(untrained, epochs=1))


def test_a_training_that_diverges_says_so(untrained: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="diverged"):
        train(SCRIPTS, tmp_path / "m", options(untrained, learning_rate=1e30, epochs=5, warmup=0))


# -- what is wrong with it --------------------------------------------------------------------------------------------


def no_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def another_kind(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "bert"}')


def cut_off(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(weights(folder)[:1000])


def another_width(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "d_ff": 48}))


def no_tokenizer(folder: Path) -> None:
    for path in folder.glob("tokenizer*"):
        path.unlink()


def few_words(folder: Path) -> None:
    torch.manual_seed(0)
    config = T5Config(vocab_size=20, d_model=8, d_ff=8, d_kv=4, num_layers=1, num_heads=2, decoder_start_token_id=0)
    T5ForConditionalGeneration(config).save_pretrained(folder)


@pytest.mark.parametrize("damage", [no_config, another_kind, cut_off, another_width, no_tokenizer, few_words])
def test_a_checkpoint_that_cannot_be_used_is_one_line(damage, untrained: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(untrained, tmp_path / "broken"))
    damage(folder)
    with pytest.raises(InputError, match="is not a T5 model with its tokenizer") as told:
        ScriptModel(folder)
    what, hint = str(told.value).splitlines()
    assert str(folder) in what
    assert "T5" in hint


def test_a_name_that_is_nowhere(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such folder, and none came from the Hugging Face hub"):
        ScriptModel("nobody/no-such-t5")


@pytest.mark.parametrize(
    ("name", "content"), [(CARD, "[]"), (CARD, "{"), (CARD, '{"format": "msg2.scripts/1"}'), ("last-000002", "x")]
)
def test_a_damaged_training_is_one_line(name: str, content: str, untrained: Path, tmp_path: Path) -> None:
    def stop(done: int, total: int | None, message: str) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(SCRIPTS, tmp_path, options(untrained), stop)
    next(path for path in tmp_path.iterdir() if path.name.startswith(name)).write_text(content)
    with pytest.raises(InputError, match=r"cannot be read|is damaged"):
        train(SCRIPTS, tmp_path, options(untrained))
