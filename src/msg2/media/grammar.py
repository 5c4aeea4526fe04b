"""Verb phrases in a parsed sentence: verb, (particle), direct object, (preposition, its object), for each object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msg2.media.clauses import (
    NAME,
    NOUN,
    OBJECT,
    RELATIVE,
    Token,
    asks,
    children,
    conjuncts,
    listed,
    nominal,
    object_of,
    without_object,
)

_PARTICLE = {"prt", "compound:prt"}
_PREPOSITION = {"prep", "dative"}

# Closed classes of English, where labels alone do not tell.
_PARTICLES = {"up", "down", "out", "off", "in", "on", "over", "through", "around"}
_DIRECTIONS = _PARTICLES | {"back", "right", "straight", "away"}
_PLACES = {"here", "there"}


class Phrase(NamedTuple):
    """A verb phrase, and which characters of the text it goes over from its first to its last word."""

    text: str
    start: int
    end: int


class _Addition(NamedTuple):
    """A preposition, maybe of two words, and its object."""

    words: tuple[Token, ...]
    place: Token

    @property
    def position(self) -> int:
        return int(self.words[0].i)


def phrases_in(tokens: Iterable[Token]) -> list[Phrase]:
    """The phrases of a parsed text (a `Doc` or a part of one), in the order of their verbs, then of their objects."""
    return [phrase for token in tokens for phrase in _phrases(token)]


def _phrases(verb: Token) -> Iterator[Phrase]:
    owner, first = object_of(verb)
    if first is None:
        return
    together = [first, *conjuncts(first)]
    for thing in together:
        addition = _addition(owner, thing, together)
        particle = [word for word in _particle(verb, first) if addition is None or word not in addition.words]
        added = [*addition.words, *_name(addition.place)] if addition else []
        words = [*particle, *_name(thing), *added]
        text = " ".join([_joined(verb, verb.lemma_), *(_joined(word, word.text) for word in words)])
        ordered = sorted([verb, *words], key=lambda token: token.i)
        yield Phrase(text.lower(), ordered[0].idx, ordered[-1].idx + len(ordered[-1]))


# -- particles and prepositions ---------------------------------------------------------------------------------


def _particle(verb: Token, thing: Token) -> list[Token]:
    """The particle of a verb, if any: what is labelled so, or one of its usual words on its own ("put it in")."""
    for child in verb.rights:
        taken_for_preposition = child.dep_ == "prep" and thing.head == child
        if child.dep_ in _PARTICLE or (child.dep_ == "advmod" and child.tag_ == "RP") or taken_for_preposition:
            return [child]
        alone = child.dep_ == "advmod" or (without_object(child) and verb.dep_ not in RELATIVE)
        before = child.left_edge.nbor(-1)
        while before.dep_ == "advmod" and before.lower_ in _DIRECTIONS and before.i > verb.i:  # "put it back on"
            before = before.nbor(-1)
        if alone and child.lower_ in _PARTICLES and (before in (verb, thing) or thing.is_ancestor(before)):
            return [child]
    return []


def _addition(verb: Token, thing: Token, together: list[Token]) -> _Addition | None:
    """The first preposition with its object that goes with the verb or with the object.

    What follows the last of coordinated objects goes with each of them, but "of" only with its own.
    """
    of_verb = [one for one in _additions(verb) if one.position > verb.i and one.place != thing]
    found = [one for one in of_verb if one.position > thing.i or one.position < together[0].i] + _additions(thing)
    for other in together:
        found += [one for one in _additions(other) if one.position > together[-1].i and one.words[0].lower_ != "of"]
    return min(found, key=lambda one: one.position, default=None)


def _additions(token: Token) -> list[_Addition]:
    """The prepositions at a word with their objects, those of "back in the pan" and "out of the pan" too."""
    found: list[_Addition] = []
    for child in token.children:
        if child.dep_ in _PREPOSITION:
            found += [_Addition((child,), place) for place in _places(child)]
        if child.dep_ in {"prep", "advmod", *_PARTICLE} and child.lower_ in _DIRECTIONS:
            for inner in children(child, {"prep"}):
                words = (child, inner) if inner.lower_ == "of" else (inner,)
                found += [_Addition(words, place) for place in _places(inner)]
        if child.dep_ == "advmod" and child.lower_ in _PLACES:
            found += [_Addition((word,), child) for word in child.lefts if word.lower_ in _PARTICLES]
        if child.dep_ in {"obl", "nmod"} and nominal(child):
            found += [_Addition((word,), child) for word in children(child, {"case"})[:1]]
    return found


def _places(preposition: Token) -> list[Token]:
    """The object of a preposition: a noun, or "here" and "there"; not a clause, as after "in order to"."""
    return [
        child
        for child in preposition.children
        if child.lower_ in _PLACES
        or (child.dep_ == "pobj" and nominal(child) and not asks(child) and child.lower_ != "order")
    ][:1]


# -- words ------------------------------------------------------------------------------------------------------


def _name(noun: Token) -> list[Token]:
    """A noun after the nouns that belong to its name: "lug nuts", but not "inch" of "two inch screws"."""
    labelled = [part for word in noun.lefts if word.dep_ in NAME for part in _part_of_name(word)]
    if (
        noun.dep_ in OBJECT and noun.pos_ in NOUN
    ):  # "your owners manual": the first noun may be taken for an object of its own
        between = {token for token in noun.lefts if token.dep_ == "amod"}
        before = noun.nbor(-1 - len(between)) if noun.i > len(between) else noun.head
        if before.dep_ == noun.dep_ and before.head == noun.head and before.pos_ in NOUN:
            labelled = [*_name(before), *labelled]
    return [*labelled, noun]


def _part_of_name(word: Token) -> list[Token]:
    if word.pos_ not in NOUN or listed(word) or children(word, {"nummod", "case"}):
        return []
    return children(word, {"conj"})[-1:] or _name(word)  # of "milk and egg wash", "egg"


def _joined(token: Token, text: str) -> str:
    """`text` with "pre-" of "pre-drill" before it, which the tokenizer cuts off."""
    before = token.doc[max(token.i - 2, 0) : token.i]
    whole = len(before) == 2 and before[1].text == "-" and not any(part.whitespace_ for part in before)
    return f"{before.text}{text}" if whole else text
