"""Verb phrases in a parsed sentence: verb, (particle), direct object, (preposition, its object), for each object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msg2.media.verb_phrases.direct_objects import PARTICLE, find_object, is_bare_preposition
from msg2.media.verb_phrases.noun_phrases import Token, children, compound_name, conjuncts, is_nominal, is_plain_nominal

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
    return [phrase for token in tokens for phrase in _phrases_of_verb(token)]


def _phrases_of_verb(verb: Token) -> Iterator[VerbPhrase]:
    owner, first = find_object(verb)
    if first is None:
        return
    together = [first, *conjuncts(first)]
    for thing in together:
        addition = _prepositional_phrase(owner, thing, together)
        particle = [word for word in _particle(verb, first) if addition is None or word not in addition.words]
        added = [*addition.words, *compound_name(addition.place)] if addition else []
        words = [*particle, *compound_name(thing), *added]
        text = " ".join([_with_prefix(verb, verb.lemma_), *(_with_prefix(word, word.text) for word in words)])
        ordered = sorted([verb, *words], key=lambda token: token.i)
        yield VerbPhrase(text.lower(), ordered[0].idx, ordered[-1].idx + len(ordered[-1]))


# -- particles and prepositions ---------------------------------------------------------------------------------


def _particle(verb: Token, thing: Token) -> list[Token]:
    """The particle of a verb, if any: what is labelled so, or one of its usual words on its own ("put it in").

    Of several, the last: "put it back on".
    """
    found: list[Token] = []
    for child in (*verb.rights, *children(thing, PARTICLE if thing.pos_ == "PRON" else set())):
        taken_for_preposition = child.dep_ == "prep" and thing.head == child
        labelled = child.dep_ in PARTICLE or (child.dep_ == "advmod" and child.tag_ == "RP") or taken_for_preposition
        alone = child.lower_ in _PARTICLES and (child.dep_ == "advmod" or is_bare_preposition(child))
        before = child.left_edge.nbor(-1)
        if labelled or (alone and (before in (verb, thing, *found) or thing.is_ancestor(before))):
            found = [child]
    return found


def _prepositional_phrase(verb: Token, thing: Token, together: list[Token]) -> _PrepositionalPhrase | None:
    """The first preposition with its object that goes with the verb or with the object.

    What follows the last of coordinated objects goes with each of them, but "of" only with its own.
    """
    of_verb = [one for one in _prepositional_phrases(verb) if one.position > verb.i and one.place != thing]
    found = [one for one in of_verb if one.position > thing.i or one.position < together[0].i]
    found += _prepositional_phrases(thing)
    for other in together:
        after_all = [one for one in _prepositional_phrases(other) if one.position > together[-1].i]
        found += [one for one in after_all if one.words[0].lower_ != "of"]
    found = [one for one in found if f"{one.words[0].lower_} {one.place.lower_}" not in _ADVERBS]
    return min(found, key=lambda one: one.position, default=None)


def _prepositional_phrases(token: Token) -> list[_PrepositionalPhrase]:
    """The prepositions at a word with their objects, those of "back in the pan" and "out of the pan" too."""
    found: list[_PrepositionalPhrase] = []
    for child in token.children:
        if child.dep_ in {"prep", "dative"}:
            found += [_PrepositionalPhrase((child,), place) for place in _prepositional_objects(child)]
        if child.dep_ in {"prep", "advmod", *PARTICLE} and child.lower_ in _DIRECTIONS:
            for inner in children(child, {"prep"}):
                words = (child, inner) if inner.lower_ == "of" else (inner,)
                found += [_PrepositionalPhrase(words, place) for place in _prepositional_objects(inner)]
        if child.dep_ == "advmod" and child.lower_ in _PLACES:
            found += [_PrepositionalPhrase((word,), child) for word in child.lefts if word.lower_ in {"in", "on"}]
        if child.dep_ in {"obl", "nmod"} and is_nominal(child):
            found += [_PrepositionalPhrase((word,), child) for word in children(child, {"case"})[:1]]
    return found


def _prepositional_objects(preposition: Token) -> list[Token]:
    """The object of a preposition: a noun, "here", "there", or who does something ("with the valve facing out")."""
    inside = [child for child in preposition.children if child.dep_ == "pobj" or child.lower_ in _PLACES]
    clauses = children(preposition, {"pcomp"})
    subjects = [subject for clause in clauses for subject in children(clause, {"nsubj"})]
    found = inside or [subject for subject in subjects if subject.left_edge.i == preposition.i + 1]
    return [place for place in found if place.lower_ in _PLACES or is_plain_nominal(place)][:1]


def _with_prefix(token: Token, text: str) -> str:
    """`text` after the "pre-" of "pre-drill" and the "two-by-" of "two-by-four", which the tokenizer cuts off."""
    doc, start = token.doc, token.i
    while start > 1 and doc[start - 1].text == "-" and not (doc[start - 1].whitespace_ or doc[start - 2].whitespace_):
        start -= 2
    return f"{doc[start : token.i].text}{text}"
