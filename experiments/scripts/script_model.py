"""T5 as a writer of scripts, as in proScript: "task; step0: …; step1: …" in, "step1 -> step0 ;" … out.

It writes within an `OrderGrammar`: the order is the most probable one, p(order | task, steps), that a beam search finds
among all partial orders of the given steps.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from experiments.scripts.order_grammar import OrderGrammar
from experiments.scripts.proscript import Edge, Script
from experiments.scripts.script_options import ScriptOptions
from msg2.errors import InputError, MissingExtraError
from msg2.graph import SubtaskGraph, all_of, step
from msg2.task import Task
from msg2.text_encoders import (
    Checkpoint,
    find_checkpoint,
    fingerprint,
    loading_model,
    prepare_for_inference,
    wrong_model_error,
)

CARD = "scripts.json"
"""The file in the folder of a model that says how it was trained here."""

_WANTED = "T5 model with its tokenizer"
_HINT = "give the folder of a T5 model for transformers, or its name on the Hugging Face hub"


class ScriptModel:
    """A T5 model with its tokenizer, from a folder, which is never looked for on the network, or by name."""

    def __init__(self, path: str | Path) -> None:
        try:
            self.model, self.tokenizer = _load_checkpoint(_find_checkpoint(path))
        except MissingExtraError:
            raise
        except InputError as error:
            raise InputError(error.what, where=error.where, hint=_HINT) from None
        self.fingerprint = fingerprint(self.model, sorted(self.tokenizer.get_vocab().items()))

    def grammar(self, steps: int, options: ScriptOptions) -> OrderGrammar:
        """What may be written about so many steps.

        Parameters
        ----------
        steps : int
            How many.
        options : ScriptOptions
            What can be set.

        Returns
        -------
        OrderGrammar
            The grammar in the tokens of the model.
        """
        return OrderGrammar.of(
            steps,
            lambda text: self.tokenizer(text, add_special_tokens=False)["input_ids"],
            end=self.tokenizer.eos_token_id,
            most=options.edges_per_step * steps,
        )

    def questions(self, scripts: list[Script]) -> Any:
        """The tokens of what is asked, shape (scripts, tokens), and their mask."""
        texts = [script.question for script in scripts]
        return self.tokenizer(texts, padding=True, return_tensors="pt", verbose=False).to(self.model.device)

    def order(self, script: Script, options: ScriptOptions) -> list[Edge]:
        """The partial order of the script's events, whose own edges have no part in it.

        Parameters
        ----------
        script : Script
            Scenario and events.
        options : ScriptOptions
            What can be set.

        Returns
        -------
        list[Edge]
            Pairs of numbers of events.
        """
        grammar = self.grammar(len(script.events), options)
        longest = max(map(len, grammar.tokens.values()), default=0)
        with torch.inference_mode():
            (written,) = self.model.generate(
                **self.questions([script]),
                num_beams=options.beams,
                do_sample=False,
                length_penalty=0.0,  # what is sought is the most probable order, be it short or long
                renormalize_logits=True,  # what the grammar forces costs nothing
                max_new_tokens=grammar.most * longest + 1,
                prefix_allowed_tokens_fn=lambda _, tokens: grammar.allowed_tokens(tokens[1:].tolist()),
            )
        return grammar.decode_edges(written[1:].tolist())

    def graph(self, task: Task, options: ScriptOptions) -> SubtaskGraph:
        """The order of the task's steps by their names, as a graph: a step needs all that come directly before it.

        Parameters
        ----------
        task : Task
            The task.
        options : ScriptOptions
            What can be set.

        Returns
        -------
        SubtaskGraph
            With the fingerprint of the model in its `method`.
        """
        asked = Script(task.name, task.steps)
        found = Script(task.name, task.steps, tuple(self.order(asked, options))).reduced_edges()
        preconditions = {
            name: all_of(step(task.steps[first]) for first, second in found if second == place)
            for place, name in enumerate(task.steps)
        }
        chosen = {"beams": options.beams, "edges_per_step": options.edges_per_step}
        made = {"name": "scripts", "options": chosen, "model": self.fingerprint, "videos": []}
        return SubtaskGraph(task.name, task.steps, preconditions, made)


def _find_checkpoint(path: str | Path) -> Checkpoint:
    found = find_checkpoint(path, _WANTED)
    if (found.folder / CARD).exists() and not (found.folder / "config.json").exists():
        raise InputError("its training has not come to its end", where=found.folder)
    if found.kind != "t5":
        raise wrong_model_error(found.folder, _WANTED, f"its config.json says {found.kind!r}")
    return found


def _load_checkpoint(found: Checkpoint) -> tuple[Any, Any]:
    """The model and its tokenizer."""
    with loading_model(found, _WANTED) as (_, transformers):
        place = {"pretrained_model_name_or_path": found.folder, "local_files_only": True}
        tokenizer = transformers.AutoTokenizer.from_pretrained(**place)
        try:
            model, remarks = transformers.T5ForConditionalGeneration.from_pretrained(
                **place, dtype=torch.float32, output_loading_info=True, ignore_mismatched_sizes=True
            )
        except SafetensorError as error:
            raise ValueError(str(error)) from None
        misfits = sorted([*remarks["missing_keys"], *(name for name, *_ in remarks["mismatched_keys"])])
        if misfits:
            raise ValueError(f"the weights {misfits[0]} are missing or do not fit its configuration")
        if len(tokenizer) > model.config.vocab_size or None in (tokenizer.eos_token_id, tokenizer.pad_token_id):
            raise ValueError("its tokenizer does not fit")
        # A checkpoint may bring settings for other work, such as never to repeat a word.
        model.generation_config = transformers.GenerationConfig(
            decoder_start_token_id=model.config.decoder_start_token_id,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    return prepare_for_inference(model, torch), tokenizer
