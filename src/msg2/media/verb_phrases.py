"""Verb phrases in narration: "crack and whisk the eggs" -> "crack eggs", "whisk eggs", each with its time.

A spaCy model parses the text; the rest are rules on its parse. A phrase is a verb, its particle, its direct object, and
the first preposition with its object, for each object of the verb. `verb_objects` finds the object.

Speech has no full stops and captions break off within sentences: all pieces are joined to one running text, which the
model cuts into sentences itself. Notes such as [Music] are not spoken, and no phrase goes over them.

A model that is trained on written text gets some tags wrong in speech; they are corrected with its dictionary. In
writing an imperative begins a sentence; in speech without full stops it follows anything, and is taken for a noun:
"turn the screw to the right raise the vehicle". Nouns before nouns are taken for adjectives ("cinnamon sugar"), and the
other way round ("crispy color").
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msg2.errors import InputError, optional_dependency
from msg2.media.pretrained_models import wrong_model_error
from msg2.media.verb_objects import (
    OBJECT,
    PARTICLE,
    children,
    compound_name,
    conjuncts,
    find_object,
    is_bare_preposition,
    is_nominal,
    is_plain_nominal,
)
from msg2.task import Sentence

if TYPE_CHECKING:
    from spacy.lookups import Lookups
    from spacy.tokens import Doc, Span, Token

# Closed classes of English, where labels alone do not tell.
_PARTICLES = {"up", "down", "out", "off", "in", "on", "over", "through", "around", "back", "away", "apart"}
_DIRECTIONS = _PARTICLES | {"right", "straight"}
_PLACES = {"here", "there"}
_ADVERBS = {
    "of course", "for example", "in while", "at all", "by way", "in order", "in case", "in fact", "at least",
    "for sure", "in general",
}  # fmt: skip
"""Prepositions with objects that say nothing of a thing or place ("once in a while")."""


class VerbPhrase(NamedTuple):
    """A verb phrase, and which characters of the text it goes over from its first to its last word."""

    text: str
    start: int
    end: int


class _PrepositionalPhrase(NamedTuple):
    """A preposition, maybe of two words, and its object."""

    words: tuple[Token, ...]
    place: Token

    @property
    def position(self) -> int:
        return int(self.words[0].i)


def find_verb_phrases(tokens: Iterable[Token]) -> list[VerbPhrase]:
    """Find the verb phrases of a parsed text (a `Doc` or a part of one), by their verbs, then objects."""
    phrases = []
    for verb in tokens:
        owner, first = find_object(verb)
        together = [] if first is None else [first, *conjuncts(first)]
        for thing in together:
            addition = _prepositional_phrase(owner, thing, together)
            particle = [word for word in _particle(verb, together[0]) if addition is None or word not in addition.words]
            added = [*addition.words, *compound_name(addition.place)] if addition else []
            words = [*particle, *compound_name(thing), *added]
            text = " ".join([_with_prefix(verb, verb.lemma_), *(_with_prefix(word, word.text) for word in words)])
            last = max([verb, *words], key=lambda token: token.i)
            start = min(token.idx for token in (verb, *words))
            phrases.append(VerbPhrase(text.lower(), start, last.idx + len(last)))
    return phrases


def _particle(verb: Token, thing: Token) -> list[Token]:
    """The particle of a verb, if any: what is labelled so, or one of its usual words on its own ("put it in").

    Of several, the last: "put it back on".
    """
    particle: list[Token] = []
    for child in (*verb.rights, *children(thing, PARTICLE if thing.pos_ == "PRON" else set())):
        taken_for_preposition = child.dep_ == "prep" and thing.head == child
        labelled = child.dep_ in PARTICLE or (child.dep_ == "advmod" and child.tag_ == "RP") or taken_for_preposition
        alone = child.lower_ in _PARTICLES and (child.dep_ == "advmod" or is_bare_preposition(child))
        before = child.left_edge.nbor(-1)
        if labelled or (alone and (before in (verb, thing, *particle) or thing.is_ancestor(before))):
            particle = [child]
    return particle


def _prepositional_phrase(verb: Token, thing: Token, together: list[Token]) -> _PrepositionalPhrase | None:
    """The first preposition with its object that goes with the verb or with the object.

    What follows the last of coordinated objects goes with each of them, but "of" only with its own.
    """
    of_verb = [phrase for phrase in _prepositional_phrases(verb) if phrase.position > verb.i and phrase.place != thing]
    candidates = [phrase for phrase in of_verb if phrase.position > thing.i or phrase.position < together[0].i]
    candidates += _prepositional_phrases(thing)
    for other in together:
        after_all = [phrase for phrase in _prepositional_phrases(other) if phrase.position > together[-1].i]
        candidates += [phrase for phrase in after_all if phrase.words[0].lower_ != "of"]
    candidates = [phrase for phrase in candidates if f"{phrase.words[0].lower_} {phrase.place.lower_}" not in _ADVERBS]
    return min(candidates, key=lambda phrase: phrase.position, default=None)


def _prepositional_phrases(token: Token) -> list[_PrepositionalPhrase]:
    """The prepositions at a word with their objects, those of "back in the pan" and "out of the pan" too."""
    phrases: list[_PrepositionalPhrase] = []
    for child in token.children:
        if child.dep_ in {"prep", "dative"}:
            phrases += [_PrepositionalPhrase((child,), place) for place in _prepositional_objects(child)]
        if child.dep_ in {"prep", "advmod", *PARTICLE} and child.lower_ in _DIRECTIONS:
            for inner in children(child, {"prep"}):
                words = (child, inner) if inner.lower_ == "of" else (inner,)
                phrases += [_PrepositionalPhrase(words, place) for place in _prepositional_objects(inner)]
        if child.dep_ == "advmod" and child.lower_ in _PLACES:
            phrases += [_PrepositionalPhrase((word,), child) for word in child.lefts if word.lower_ in {"in", "on"}]
        if child.dep_ in {"obl", "nmod"} and is_nominal(child):
            phrases += [_PrepositionalPhrase((word,), child) for word in children(child, {"case"})[:1]]
    return phrases


def _prepositional_objects(preposition: Token) -> list[Token]:
    """The object of a preposition: a noun, "here", "there", or who does something ("with the valve facing out")."""
    inside = [child for child in preposition.children if child.dep_ == "pobj" or child.lower_ in _PLACES]
    clauses = children(preposition, {"pcomp"})
    subjects = [subject for clause in clauses for subject in children(clause, {"nsubj"})]
    candidates = inside or [subject for subject in subjects if subject.left_edge.i == preposition.i + 1]
    return [place for place in candidates if place.lower_ in _PLACES or is_plain_nominal(place)][:1]


def _with_prefix(token: Token, text: str) -> str:
    """`text` after the "pre-" of "pre-drill" and the "two-by-" of "two-by-four", which the tokenizer cuts off."""
    doc, start = token.doc, token.i
    while start > 1 and doc[start - 1].text == "-" and not (doc[start - 1].whitespace_ or doc[start - 2].whitespace_):
        start -= 2
    return f"{doc[start : token.i].text}{text}"


_DESCRIBED = {"NN", "NNP", "JJ", "JJR", "RB"}
_ACTIVE = {"VB", "VBP", "VBD"}
_OF_NOUNS = {"pobj", "dobj", "obj", "compound", "appos", "nmod"}
_DETERMINERS = {"det", "poss", "nummod", "predet"}
_SUBJECTS = {"nsubj", "nsubjpass", "nsubj:pass", "csubj", "expl"}
_PERSONS = {"i", "you", "he", "she", "we", "they"}
_ENDING = {"right", "left", "next"}  # adjectives that may end a sentence: "turn it to the right"


class PartOfSpeechDictionary(NamedTuple):
    """Base forms by part of speech, as a lemmatizer has them; without any, nothing is corrected."""

    nouns: frozenset[str] = frozenset()
    verbs: frozenset[str] = frozenset()
    adjectives: frozenset[str] = frozenset()

    @staticmethod
    def from_lemmatizer(lemmatizer: object) -> PartOfSpeechDictionary:
        """Return the dictionary of spaCy's lemmatizer by rules; other lemmatizers have none."""
        lookups: Lookups | None = getattr(lemmatizer, "lookups", None)
        if lookups is None or "lemma_index" not in lookups:
            return PartOfSpeechDictionary()
        table = lookups.get_table("lemma_index")
        return PartOfSpeechDictionary(*(frozenset(table.get(part, ())) for part in ("noun", "verb", "adj")))

    def correct_tags(self, doc: Doc) -> Doc:
        """Mark words that are taken for other parts of speech as what they are; the document is changed in place."""
        for token in doc if self.adjectives else ():
            if self._is_verb(token):
                token.pos_, token.lemma_ = "VERB", token.lower_
            elif self._is_noun(token):
                token.pos_ = "NOUN"
            elif token.tag_ in {"NN", "NNP"} and token.lower_ in self.adjectives and token.lower_ not in self.nouns:
                token.pos_ = "ADJ"
        return doc

    def _is_verb(self, token: Token) -> bool:
        """Whether a word that has an object is taken for something without: "lower the car"."""
        named = token.i and (token.nbor(-1).tag_ in {"DT", "PRP$"} or token.nbor(-1).text == "-")
        return token.tag_ in _DESCRIBED and token.lower_ in self.verbs and _has_object(token) and not named

    def _is_noun(self, token: Token) -> bool:
        """Whether a word before a noun is one itself ("cinnamon sugar", "frying pan"); "non-dairy" is none."""
        if token.tag_ == "VBG":
            return token.dep_ in {"amod", "compound"} and token.lower_ not in self.adjectives
        part = token.i and token.nbor(-1).text == "-"
        only = token.lower_ in self.nouns and token.lower_ not in self.adjectives
        return token.tag_ == "JJ" and only and not part

    def hidden_imperatives(self, sentence: Span) -> list[Token]:
        """Find the words after the first that may begin an imperative, but are labelled as if they did not.

        Each could be a verb, an object follows, and what stands before could end a sentence.
        """
        verbs = [token for token in sentence[1:-1] if token.lower_ in self.verbs and _is_mistagged(token)]
        return [token for token in verbs if _is_followed_by_object(token) and _may_follow_sentence_end(token)]


def begins_with_imperative(doc: Doc) -> bool:
    """Whether a parsed text begins with a verb in its base form that has an object."""
    return doc[0].tag_ in {"VB", "VBP"} and bool(children(doc[0], OBJECT))


def _has_object(token: Token) -> bool:
    """Whether a word is labelled with an object, or shares the one of the next verb ("measure and cut the wood")."""
    shares = token.is_sent_start and any(other.pos_ == "VERB" for other in children(token, {"conj"}))
    return shares or any(thing.i > token.i for thing in children(token, OBJECT))


def _is_mistagged(token: Token) -> bool:
    return token.tag_ in _DESCRIBED or (token.tag_ in _ACTIVE and token.dep_ in _OF_NOUNS)


def _is_followed_by_object(token: Token) -> bool:
    """Whether the next word, maybe after a particle, begins a noun phrase that is not the subject of something else."""
    follower = next((word for word in token.doc[token.i + 1 : token.i + 3] if word.tag_ != "RP"), token)
    noun = follower.head if follower.dep_ in _DETERMINERS else follower
    begins = follower.tag_ in {"DT", "PDT", "PRP$", "PRP", "CD"} and follower.lower_ not in _PERSONS
    return begins and not (noun.dep_ in _SUBJECTS and noun.head != token)


def _may_follow_sentence_end(token: Token) -> bool:
    """Whether the words before this one may end a sentence; where it is labelled with an object, most may."""
    before = token.nbor(-1)
    if before.tag_ in {"DT", "PRP$", "TO", "MD", "HYPH"}:
        return False
    describes = before.tag_.startswith("JJ") and before.dep_ == "amod" and before.lower_ not in _ENDING
    return _has_object(token) or not (describes or before.tag_ in {"IN", "CC", "CD", ","})


CHUNK_CHARACTERS = 5000  # text that is parsed at once; longer narration is cut between words, and memory stays bounded

_NUMBER = r"(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten)"
_NOTE = re.compile(rf"\[[^\[\]]*\]|\bstep (?:number )?{_NUMBER}\b\.?", re.IGNORECASE)
"""What is not part of any sentence: "[Music]", and "step two" before the step itself."""
_REQUIRED_PIPES = ("parser", "lemmatizer")


class VerbPhraseExtractor:
    """Extracts verb phrases from narration with an English model of spaCy."""

    def __init__(self, model: str | Path, *, keep_sentences: bool = False) -> None:
        with optional_dependency("finding verb phrases", "video"):
            import spacy
        try:
            self._nlp = spacy.load(model, exclude=["ner"])
        except (OSError, ValueError, ImportError, KeyError) as error:
            hint = "give the folder of a spaCy model, or the name of one that is installed, such as en_core_web_sm"
            raise wrong_model_error(model, "model of spaCy", str(error), hint) from None
        if missing := [part for part in _REQUIRED_PIPES if part not in self._nlp.pipe_names]:
            raise InputError(f"is a spaCy model without a {missing[0]}", where=model, hint="take a whole pipeline")
        self._dictionary = PartOfSpeechDictionary.from_lemmatizer(self._nlp.get_pipe("lemmatizer"))
        self._keep_sentences = keep_sentences
        about = self._nlp.meta
        kept = ", sentences kept" if keep_sentences else ""
        self.name = f"{about['lang']}_{about['name']} {about['version']}@{_fingerprint(self._nlp.path)}{kept}"
        self.versions: Mapping[str, str] = {package: version(package) for package in ("msg2", "spacy")}  # rules, model

    def extract_timed(self, pieces: Sequence[Sentence]) -> tuple[Sentence, ...]:
        """Extract the verb phrases of narration in pieces (captions, or single words).

        The time of a phrase goes from its first to its last word. If sentences are kept, those without a phrase come
        as they are spoken.
        """
        text = RunningText.join(pieces)
        timed = []
        for sentence, first in self._sentences(text):
            phrases = find_verb_phrases(sentence)
            if not phrases and self._keep_sentences:
                phrases = [VerbPhrase(sentence.text.strip(), sentence.start_char, sentence.end_char)]
            timed += [text.timed_sentence(words, first + start, first + end) for words, start, end in phrases if words]
        return tuple(sorted(timed, key=lambda phrase: (phrase.start, phrase.end)))

    def _sentences(self, text: RunningText) -> Iterator[tuple[Span, int]]:
        """The parsed sentences of a text, each with the place in it from which its characters are counted.

        A sentence with an imperative inside is cut before it and parsed again, if then it does begin with one.
        """
        for doc, first in self._nlp.pipe(text.chunks(CHUNK_CHARACTERS), as_tuples=True):
            for sentence in self._dictionary.correct_tags(doc).sents:
                starts = [token.idx for token in self._dictionary.hidden_imperatives(sentence)]
                last = sentence.end_char
                cuts = [start for start in starts if begins_with_imperative(self._nlp(doc.text[start:last]))]
                if not cuts:
                    yield sentence, first
                    continue
                for start, end in pairwise([sentence.start_char, *cuts, last]):
                    part = self._dictionary.correct_tags(self._nlp(doc.text[start:end]))
                    yield from ((sentence, first + start) for sentence in part.sents)


class RunningText(NamedTuple):
    """The texts of pieces, in the order of their starts and one space apart, and when each character is spoken."""

    text: str
    places: tuple[int, ...]  # where each piece begins in the text
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
        """Make a sentence with the times of some characters of this text."""
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
