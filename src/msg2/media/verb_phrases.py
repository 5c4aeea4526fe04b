"""Verb phrases in narration: "crack and whisk the eggs" -> "crack eggs", "whisk eggs", each with its time.

A spaCy model parses the text. Rules on its dependency labels do the rest, for the labels of its English models (dobj,
prt, pobj) and for Universal Dependencies (obj, compound:prt, obl with case). A phrase is a verb, its particle, an
object with the nouns in front of it ("lug nuts"), and the first preposition with its object. The object of a verb is
the first of these that there is; every noun that is coordinated with it is an object, too:

- its direct object; a relative pronoun stands for the noun before the clause;
- the subject of a passive, or the noun before a participle ("the jack used here");
- the noun after a particle that is taken for a preposition ("stir in the sugar");
- the subject of a complement without a finite verb ("make it thicker", "remove the nuts take the wheel off");
- the noun before a relative clause ("the nuts you have to remove");
- the object of the next verb ("crack and whisk the eggs").

Speech has no full stops and captions break off within sentences: all pieces are joined to one running text, which the
model cuts into sentences itself. Notes such as [Music] are not spoken, and no phrase goes over them.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from msg2.errors import InputError, optional_dependency
from msg2.task import Sentence
from msg2.text_encoders import wrong_model_error

if TYPE_CHECKING:
    from spacy.tokens import Token

_OBJECT = {"dobj", "obj"}
_PASSIVE_SUBJECT = {"nsubjpass", "nsubj:pass"}
_SUBJECT = {"nsubj", *_PASSIVE_SUBJECT}
_PASSIVE = {"auxpass", "aux:pass"}
_DETERMINER = {"det", "poss", "nummod"}
_NOUN = {"NOUN", "PROPN", "X"}
_RELATIVE_PRONOUN = {"WDT", "WP", "WP$"}

# Closed classes of English, where labels alone do not tell.
_NO_OBJECTS = {"a", "an", "the", "i", "he", "she", "we", "they", "'s"}
_NO_ACTIONS = {"be", "go", "come", "let", "try", "done", "stuck", "gone", "finished"}
_TELLING = {"show", "tell", "teach", "ask", "give"}
_PERSONS = {"me", "you", "him", "her", "us", "guys"}
_ADDING = {"put", "add", "pour", "stir", "mix", "fold", "throw", "screw", "turn"}
_THINKING = {"see", "feel", "think", "know", "hope", "say", "remember", "guess", "mean", "want", "need", "like", "get"}
_PARTICLES = {"up", "down", "out", "off", "in", "on", "over", "through", "around", "back", "away", "apart"}
_MEASURES = {"quarter", "half", "inch", "foot", "degree"}
_PLACES = {"here", "there"}
_CIRCUMSTANCES = {"way", "time", "rest"}  # no things: "the way you drive", "tighten them the rest of the way"
_ADVERBS = {"course", "example", "while", "order", "case", "fact", "least"}  # with a preposition: "once in a while"


class VerbPhrase(NamedTuple):
    """A verb phrase, and which characters of the text it goes over from its first to its last word."""

    text: str
    start: int
    end: int


def find_verb_phrases(tokens: Iterable[Token]) -> list[VerbPhrase]:
    """Find the verb phrases of a parsed text (a `Doc` or a part of one), by their verbs, then objects."""
    phrases = []
    for verb in tokens:
        owner, first = _find_object(verb)
        objects = [] if first is None else [first, *_conjuncts(first)]
        for thing in objects:
            place = _prepositional_phrase(owner, thing, objects[0])
            particle = [word for word in _particle(verb, objects[0]) if word not in place]
            words = [*particle, *_compound_name(thing), *place]
            base = verb.lemma_ if verb.pos_ in {"VERB", "AUX"} else verb.text
            text = " ".join([base, *(word.text for word in words)])
            ordered = sorted([verb, *words])
            phrases.append(VerbPhrase(text.lower(), ordered[0].idx, ordered[-1].idx + len(ordered[-1])))
    return phrases


def _children(token: Token, labels: set[str]) -> list[Token]:
    return [child for child in token.children if child.dep_ in labels]


def _is_nominal(token: Token) -> bool:
    """Whether this can be an object: a noun, or what stands for one ("take two", "in half")."""
    if token.tag_ == "PRP$" or (token.tag_ in {"DT", "PRP"} and token.lower_ in _NO_OBJECTS):
        return False
    stands = token.pos_ == "ADJ" or token.lower_ == "that" or bool(_children(token, _DETERMINER))
    return token.pos_ in {*_NOUN, "PRON", "NUM", "DET", "SYM"} or (token.dep_ in {*_OBJECT, "pobj"} and stands)


def _find_object(verb: Token) -> tuple[Token, Token | None]:
    """Find the first object of a verb, if any, and the verb where it stands: another one where it is shared."""
    labelled = [child for child in _children(verb, _OBJECT) if _is_nominal(child)]
    is_verb = verb.pos_ in {"VERB", "AUX"} or (labelled and not _children(verb, _DETERMINER))
    if not is_verb or {verb.lemma_, verb.lower_} & _NO_ACTIONS:
        return verb, None
    things = [thing for thing in labelled if not (thing.lower_ in _PERSONS and verb.lemma_ in _TELLING)]
    nouns = [thing for thing in things if thing.pos_ in _NOUN] or things  # "cook me an egg"
    thing = _passive_subject(verb) or _object_after_particle(verb) or _complement_subject(verb)
    if nouns:  # "need a jack a wrench" has two objects, "check owners manual" has one
        thing = nouns[0] if all(_children(other, _DETERMINER) for other in nouns[1:]) else nouns[-1]
    if thing is None or thing.tag_ in _RELATIVE_PRONOUN:
        thing = _noun_before_clause(verb)
    for follower in _children(verb, {"conj"} if not nouns and thing is None else set()):
        between = verb.doc[verb.i + 1 : follower.i]
        near = all(word.pos_ in {"CCONJ", "PUNCT", "ADV"} or word.dep_ in {"conj", "aux", "neg"} for word in between)
        if near and not _children(follower, _SUBJECT):
            return _find_object(follower)
    return verb, thing


def _passive_subject(verb: Token) -> Token | None:
    participle = verb.tag_ in {"VBN", "VBD"} and not _children(verb, {"aux", "mark", *_SUBJECT})
    clause = verb.head if participle and verb.dep_ == "conj" else verb
    if subjects := _children(clause, _PASSIVE_SUBJECT):
        return subjects[-1]
    if participle and verb.dep_ == "acl":
        return verb.head
    while _children(verb, _PASSIVE) and clause.dep_ == "xcomp" and not _children(clause, {"nsubj"}):
        clause = clause.head  # "the bolts need to be tightened"
    return None if clause == verb else next(iter(_children(clause, {"nsubj"})), None)


def _object_after_particle(verb: Token) -> Token | None:
    for child in _children(verb, {"prep"}):
        if child.i == verb.i + 1 and (child.tag_ == "RP" or (verb.lemma_ in _ADDING and child.lower_ in {"in", "on"})):
            return next(iter(_children(child, {"pobj"})), None)
    return None


def _complement_subject(verb: Token) -> Token | None:
    for clause in _children(verb, {"ccomp"} if verb.lemma_ not in _THINKING | _TELLING | {"have"} else set()):
        helpers = [word for word in _children(clause, {"aux", "mark", *_PASSIVE}) if word.lower_ not in {"to", "do"}]
        finite = helpers or clause.lemma_ == "be" or clause.tag_ == "VBZ"
        for subject in _children(clause, {"nsubj"} if not finite else set()):
            if subject.i > verb.i and _is_nominal(subject) and subject.tag_ not in _RELATIVE_PRONOUN:
                return subject
    return None


def _noun_before_clause(verb: Token) -> Token | None:
    clause = verb
    while clause.dep_ == "xcomp" and not _children(clause.head, _OBJECT):
        clause = clause.head
    noun, words = clause.head, [*clause.children, *verb.children]
    relative = clause.dep_ in {"relcl", "acl:relcl"} and _is_nominal(noun) and noun.lemma_ not in _CIRCUMSTANCES
    complete = _children(verb, {"xcomp", "ccomp", "acomp", "attr"}) or any(map(_is_bare, verb.children))
    elsewhere = any(word.tag_ == "WRB" or (word.tag_ in _RELATIVE_PRONOUN and word.dep_ == "nsubj") for word in words)
    has_subject = any(word.dep_ in _SUBJECT or word.tag_ == "TO" for word in words)
    return noun if relative and has_subject and not (complete or elsewhere) else None


def _conjuncts(noun: Token) -> list[Token]:
    """What is coordinated with a noun, or goes on with a list without conjunctions: "a jack a wrench"."""
    others = [child for child in _children(noun, {"conj"}) if _is_nominal(child)]
    beside = _children(noun.head, {noun.dep_, "npadvmod"}) if noun.dep_ in _OBJECT else []
    for other in (*_children(noun, {"appos"}), *beside):
        follows = other.i > noun.i and other.left_edge.nbor(-1) in noun.subtree
        thing = other.pos_ in _NOUN and other.lemma_ not in _CIRCUMSTANCES and _children(other, _DETERMINER)
        if follows and thing and (other.dep_ in _OBJECT or any(word.lower_ == "of" for word in other.rights)):
            others.append(other)
    return sorted({item for other in others for item in (other, *_conjuncts(other))})


def _compound_name(noun: Token) -> list[Token]:
    """A noun after the nouns that belong to its name: "lug nuts", but not "inch" of "two inch screws"."""
    words = [word for word in noun.lefts if word.dep_ in {"compound", "nmod", "flat", "amod"} and word.pos_ in _NOUN]
    parts = [word for word in words if word.lower_ not in _MEASURES and not _children(word, {"nummod", "case"})]
    return [*(part for word in parts if word.nbor(1).text != "-" for part in _compound_name(word)), noun]


def _is_bare(token: Token) -> bool:
    """Whether this is a preposition on its own, as in "put it in"."""
    inside = any(_is_nominal(word) or word.lower_ in _PLACES or word.dep_ == "prep" for word in token.children)
    return token.dep_ == "prep" and not inside


def _particle(verb: Token, thing: Token) -> list[Token]:
    """The particle of a verb, if any: what is labelled so, or a usual one on its own; of several, the last."""
    particles = [
        child
        for child in verb.rights
        if child.dep_ in {"prt", "compound:prt"}
        or (child.lower_ in _PARTICLES and (child.dep_ == "advmod" or _is_bare(child)))
        or (child.dep_ == "prep" and child == thing.head)
    ]
    return particles[-1:]


def _prepositional_phrase(verb: Token, thing: Token, first: Token) -> list[Token]:
    """The first preposition with its object that goes with the verb or with the object."""
    of_verb = [words for words in _prepositional_phrases(verb) if words[0].i > verb.i and thing not in words]
    phrases = [words for words in of_verb if not first.i < words[0].i < thing.i] + _prepositional_phrases(thing)
    phrases = [words for words in phrases if words[-1].lemma_ not in _ADVERBS]
    return min(phrases, key=lambda words: words[0].i, default=[])


def _prepositional_phrases(token: Token) -> list[list[Token]]:
    """The prepositions at a word with their objects, those of "back in the pan" and "out of the pan" too."""
    phrases = []
    for child in token.children:
        prepositions = [[child]] if child.dep_ == "prep" else []
        for inner in _children(child, {"prep"} if child.lower_ in _PARTICLES else set()):
            prepositions.append([child, inner] if inner.lower_ == "of" else [inner])
        for words in prepositions:
            nouns = [noun for noun in _children(words[-1], {"pobj"}) if _is_nominal(noun)]
            places = [place for place in words[-1].children if place.lower_ in _PLACES]
            plain = [place for place in (*nouns, *places) if place.tag_ not in _RELATIVE_PRONOUN]
            phrases += [[*words, *_compound_name(place)] for place in plain[:1]]
        if child.lower_ in _PLACES:
            phrases += [[word, child] for word in child.lefts if word.lower_ in {"in", "on"}]
        if child.dep_ in {"obl", "nmod"}:
            phrases += [[word, *_compound_name(child)] for word in _children(child, {"case"})[:1]]
    return phrases


CHUNK_CHARACTERS = 5000  # text that is parsed at once; longer narration is cut between words, and memory stays bounded

_NUMBER = r"(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten)"
_NOTE = re.compile(rf"\[[^\[\]]*\]|\bstep (?:number )?{_NUMBER}\b\.?", re.IGNORECASE)
"""What is not part of any sentence: "[Music]", and "step two" before the step itself."""


class VerbPhraseExtractor:
    """Extracts verb phrases from narration with an English model of spaCy."""

    def __init__(self, model: str | Path, *, keep_sentences: bool = False) -> None:
        with optional_dependency("finding verb phrases", "video"):
            import spacy
        try:
            self._nlp = spacy.load(model, exclude=["ner"])
        except (OSError, ValueError, ImportError, KeyError) as error:
            hint = "give its folder, or install it: python -m spacy download en_core_web_sm"
            reason = re.sub(r"^\[E\d+\] ", "", str(error)).partition(". ")[0]  # spaCy numbers its errors
            raise wrong_model_error(model, "model of spaCy", reason, hint) from None
        if missing := [part for part in ("parser", "lemmatizer") if part not in self._nlp.pipe_names]:
            raise InputError(f"is a spaCy model without a {missing[0]}", where=model, hint="take a whole pipeline")
        self._keep_sentences = keep_sentences
        about = self._nlp.meta
        kept = ", sentences kept" if keep_sentences else ""
        self.name = f"{about['lang']}_{about['name']} {about['version']}@{_fingerprint(self._nlp.path)}{kept}"
        self.versions: Mapping[str, str] = {package: version(package) for package in ("msg2", "spacy")}  # rules, model

    def extract_timed(self, pieces: Sequence[Sentence]) -> tuple[Sentence, ...]:
        """Extract the verb phrases of narration in pieces (captions or words), timed from first to last word."""
        text = RunningText.join(pieces)
        timed = []
        for doc, first in self._nlp.pipe(text.parts(CHUNK_CHARACTERS), as_tuples=True):
            for sentence in doc.sents:
                phrases = find_verb_phrases(sentence)
                if not phrases and self._keep_sentences:
                    phrases = [VerbPhrase(sentence.text.strip(), sentence.start_char, sentence.end_char)]
                timed += [text.timed_sentence(words, first + start, first + end) for words, start, end in phrases]
        return tuple(sorted(timed, key=lambda phrase: (phrase.start, phrase.end)))


class RunningText(NamedTuple):
    """The texts of pieces by start, one space apart, and when their characters are spoken: evenly within a piece."""

    text: str
    borders: list[int]  # the characters where a piece begins or ends
    seconds: list[float]  # when these are spoken

    @staticmethod
    def join(pieces: Sequence[Sentence]) -> RunningText:
        """Join pieces to one text; those without text are left out.

        >>> RunningText.join([Sentence("jack up", 1.0, 2.5), Sentence("the car", 2.0, 3.0)])
        RunningText(text='jack up the car', borders=[0, 7, 8, 15], seconds=[1.0, 2.0, 2.0, 3.0])
        """
        ordered = sorted((piece for piece in pieces if piece.text), key=lambda piece: piece.start)
        next_starts = [*(piece.start for piece in ordered[1:]), math.inf]
        borders, seconds, place = [], [], 0
        for piece, next_start in zip(ordered, next_starts, strict=False):
            borders += [place, place + len(piece.text)]
            seconds += [piece.start, min(piece.end, next_start) if piece.start < next_start else piece.end]
            place += len(piece.text) + 1
        return RunningText(" ".join(piece.text for piece in ordered), borders, seconds)

    def parts(self, longest: int) -> Iterator[tuple[str, int]]:
        """Yield the text between notes, cut between words after about `longest` characters, with its places."""
        spoken = _NOTE.sub(lambda note: "\n" * len(note[0]), self.text)
        for part in re.finditer(rf"\S[^\n]{{0,{longest}}}\S*", spoken):
            yield part[0].rstrip(), part.start()

    def timed_sentence(self, words: str, start: int, end: int) -> Sentence:
        """Make a sentence with the times of some characters of this text."""
        return Sentence(words, *np.interp([start, end], self.borders, self.seconds).round(3).tolist())


def _fingerprint(folder: Path) -> str:
    """A hash of the weights, wherever they lie."""
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(file.relative_to(folder).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()[:12]
