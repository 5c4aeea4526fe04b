"""Narration -> verb phrases with their times, by a spaCy model; what a phrase is, the module `grammar` says.

Speech has no full stops and captions break off within sentences: all pieces are joined to one running text, which the
model cuts into sentences itself; what it tags wrongly, the module `tag_correction` puts right. Notes such as [Music]
are not spoken, and no phrase goes over them.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

from msg2.errors import InputError
from msg2.extras import optional_dependency
from msg2.media.verb_phrases.grammar import VerbPhrase, find_verb_phrases
from msg2.media.verb_phrases.tag_correction import PartOfSpeechDictionary, Span, begins_with_imperative
from msg2.task import Sentence
from msg2.text import short_repr

CHUNK_CHARACTERS = 5000
"""Text that is parsed at once; longer narration is cut between words, and memory stays bounded."""

_NUMBER = r"(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten)"
_NOTE = re.compile(rf"\[[^\[\]]*\]|\bstep (?:number )?{_NUMBER}\b\.?", re.IGNORECASE)
"""What is not part of any sentence: "[Music]", and "step two" before the step itself."""
_REQUIRED_PIPES = ("parser", "lemmatizer")


class VerbPhraseExtractor:
    """Extracts verb phrases from narration with an English model of spaCy.

    Parameters
    ----------
    model : str or Path
        The name of an installed package, or a folder; it has to have a parser, part-of-speech tags and a lemmatizer.
    keep_sentences : bool, optional
        Whether sentences that have no verb phrase are kept as they are spoken.
    """

    def __init__(self, model: str | Path, *, keep_sentences: bool = False) -> None:
        with optional_dependency("finding verb phrases", "media"):
            import spacy
        try:
            self._nlp = spacy.load(model, exclude=["ner"])
        except (OSError, ValueError, ImportError, KeyError) as error:
            hint = "give the folder of a spaCy model, or the name of one that is installed, such as en_core_web_sm"
            first = short_repr(str(error).strip().splitlines()[0], 160)[1:-1]
            raise InputError(f"is not a model of spaCy ({first})", where=model, hint=hint) from None
        if missing := [part for part in _REQUIRED_PIPES if part not in self._nlp.pipe_names]:
            raise InputError(f"is a spaCy model without a {missing[0]}", where=model, hint="take a whole pipeline")
        self._dictionary = PartOfSpeechDictionary.from_lemmatizer(self._nlp.get_pipe("lemmatizer"))
        self._keep_sentences = keep_sentences
        about = self._nlp.meta
        kept = ", sentences kept" if keep_sentences else ""
        self.name = f"{about['lang']}_{about['name']} {about['version']}@{_fingerprint(self._nlp.path)}{kept}"
        self.versions: Mapping[str, str] = {package: version(package) for package in ("msg2", "spacy")}  # rules, model

    def extract(self, text: str) -> list[str]:
        """Extract the verb phrases of a text: "crack and whisk the eggs" has "crack eggs" and "whisk eggs"."""
        running = RunningText.join([Sentence(text, 0.0, 1.0)])
        return [phrase.text for sentence, _ in self._sentences(running) for phrase in find_verb_phrases(sentence)]

    def extract_timed(self, pieces: Sequence[Sentence]) -> tuple[Sentence, ...]:
        """Extract the verb phrases of narration in pieces (captions, or single words).

        The time of a phrase goes from its first to its last word. If sentences are kept, those without a phrase come
        as they are spoken.
        """
        text = RunningText.join(pieces)
        found = []
        for sentence, first in self._sentences(text):
            phrases = find_verb_phrases(sentence)
            if not phrases and self._keep_sentences:
                phrases = [VerbPhrase(sentence.text.strip(), sentence.start_char, sentence.end_char)]
            found += [text.timed_sentence(words, first + start, first + end) for words, start, end in phrases if words]
        return tuple(sorted(found, key=lambda phrase: (phrase.start, phrase.end)))

    def _sentences(self, text: RunningText) -> Iterator[tuple[Span, int]]:
        """The parsed sentences of a text, each with the place in it from which its characters are counted.

        A sentence with an imperative inside is cut before it and parsed again, if then it does begin with one.
        """
        for doc, first in self._nlp.pipe(text.chunks(CHUNK_CHARACTERS), as_tuples=True):
            for sentence in self._dictionary.correct_tags(doc).sents:
                places = [token.idx for token in self._dictionary.hidden_imperatives(sentence)]
                last = sentence.end_char
                cuts = [place for place in places if begins_with_imperative(self._nlp(doc.text[place:last]))]
                if not cuts:
                    yield sentence, first
                    continue
                for start, end in pairwise([sentence.start_char, *cuts, last]):
                    part = self._dictionary.correct_tags(self._nlp(doc.text[start:end]))
                    yield from ((sentence, first + start) for sentence in part.sents)


class RunningText(NamedTuple):
    """The texts of pieces, in the order of their starts and one space apart, and when each character is spoken."""

    text: str
    places: tuple[int, ...]
    """Where each piece begins in the text."""
    pieces: tuple[Sentence, ...]

    @staticmethod
    def join(pieces: Sequence[Sentence]) -> RunningText:
        """Join pieces to one text; those without text are left out.

        >>> RunningText.join([Sentence("jack up", 1.0, 2.0), Sentence("the car", 2.0, 3.0)]).text
        'jack up the car'
        """
        ordered = tuple(sorted((piece for piece in pieces if piece.text), key=lambda piece: piece.start))
        places = accumulate((len(piece.text) + 1 for piece in ordered), initial=0)
        return RunningText(" ".join(piece.text for piece in ordered), tuple(places)[:-1], ordered)

    def chunks(self, longest: int) -> Iterator[tuple[str, int]]:
        """Yield the text between notes, cut between words after about `longest` characters, with its places."""
        notes = [*_NOTE.finditer(self.text)]
        starts, ends = [0, *(note.end() for note in notes)], [*(note.start() for note in notes), len(self.text)]
        for start, end in zip(starts, ends, strict=True):
            while start < end:
                space = self.text.find(" ", start + longest, end)
                cut = end if space < 0 else space
                yield self.text[start:cut], start
                start = cut + 1

    def timed_sentence(self, words: str, start: int, end: int) -> Sentence:
        """Make a sentence with the times of some characters of this text.

        Parameters
        ----------
        words : str
            The text of the sentence.
        start, end : int
            It is spoken from the character at `start` to the one before `end`.

        Returns
        -------
        Sentence
            The words, with their seconds.

        >>> RunningText.join([Sentence("jack", 1.0, 2.0), Sentence("it up", 4.0, 5.0)]).timed_sentence("jack it", 0, 7)
        Sentence(text='jack it', start=1.0, end=4.4)
        """
        return Sentence(words, self._seconds_at(start, 0), self._seconds_at(end - 1, 1))

    def _seconds_at(self, character: int, after: int) -> float:
        """When a character is spoken, or (`after` = 1) has been: the characters of a piece share its time evenly.

        A piece that is still on the screen when the next one comes has been spoken by then.
        """
        index = bisect_right(self.places, character) - 1
        piece = self.pieces[index]
        end = piece.end
        if index + 1 < len(self.pieces) and piece.start < self.pieces[index + 1].start:
            end = min(end, self.pieces[index + 1].start)
        share = min((character - self.places[index] + after) / len(piece.text), 1.0)
        return round(piece.start + share * (end - piece.start), 3)


def _fingerprint(folder: Path) -> str:
    """A hash of the weights, wherever they lie."""
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(file.relative_to(folder).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()[:12]
