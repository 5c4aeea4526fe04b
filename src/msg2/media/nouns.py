"""Nouns in a parsed clause: what can be an object, what belongs to the name of a thing, which things stand in a row.

The parse is spaCy's, with the labels of its English models (dobj, prt, pobj) or of Universal Dependencies (obj,
compound:prt, obl with case).
"""

from __future__ import annotations

from typing import Any, TypeAlias

Token: TypeAlias = Any
"""A `spacy.tokens.Token`."""

OBJECT = {"dobj", "obj"}
NAME = {"compound", "nmod", "flat"}
NOUN = {"NOUN", "PROPN", "X"}
_NOMINAL = NOUN | {"PRON", "NUM", "DET", "SYM"}

_NO_OBJECTS = {"a", "an", "the", "i", "he", "she", "we", "they", "'s"}
_MEASURES = {"quarter", "half", "inch", "foot", "degree"}
CIRCUMSTANCES = {"time", "way", "rest", "day", "moment", "reason", "place"}
"""Nouns that say when, where, how or why: "tighten them the rest of the way", "the way you drive"."""


def nominal(token: Token) -> bool:
    """Whether this can be an object: a noun, or what stands for one ("take two", "in half")."""
    if token.tag_ == "PRP$" or (token.tag_ in ("DT", "PRP") and token.lower_ in _NO_OBJECTS):
        return False
    named = token.pos_ == "VERB" and children(token, {"det", "poss", "amod", "compound"})
    stands = (
        token.pos_ == "ADJ"
        or (token.tag_ == "IN" and token.lower_ == "that")
        or (named and not children(token, OBJECT))
    )
    return token.pos_ in _NOMINAL or (token.dep_ in OBJECT | {"pobj"} and bool(stands))


def asks(token: Token) -> bool:
    """Whether this is a relative or interrogative pronoun."""
    return token.tag_ in {"WDT", "WP", "WP$"}


def introduced(noun: Token) -> bool:
    """Whether a noun phrase begins before this noun: "a jack", "your jack", "two jacks"."""
    return any(child.dep_ in {"det", "poss", "nummod"} for child in noun.lefts)


def children(token: Token, labels: set[str]) -> list[Token]:
    """The words that hang on this one by one of these labels, in the order of the text."""
    return [child for child in token.children if child.dep_ in labels]


# -- names ------------------------------------------------------------------------------------------------------


def name(noun: Token) -> list[Token]:
    """A noun after the nouns that belong to its name: "lug nuts", but not "inch" of "two inch screws"."""
    if noun.pos_ == "VERB" and noun.dep_ == "ccomp":  # "a table saw"
        return [*name(noun.nbor(-1)), noun]
    labelled = [word for word in noun.lefts if word.dep_ in NAME or (word.dep_ == "amod" and word.pos_ in NOUN)]
    parts = [part for word in labelled for part in _part_of_name(word)]
    if noun.dep_ in OBJECT and noun.pos_ in NOUN:  # "your owners manual": may be taken for two objects
        between = {token for token in noun.lefts if token.dep_ == "amod"}
        before = noun.nbor(-1 - len(between)) if noun.i > len(between) else noun.head
        if before.dep_ == noun.dep_ and before.head == noun.head and before.pos_ in NOUN:
            parts = [*name(before), *parts]
    return [*parts, noun]


def _part_of_name(word: Token) -> list[Token]:
    hyphenated = word.nbor(1).text == "-" and not word.whitespace_  # the whole of "roll-ups" comes with "ups"
    measure = word.lower_ in _MEASURES or children(word, {"nummod", "case"})
    if word.pos_ not in NOUN or hyphenated or measure or _listed(word):
        return []
    return children(word, {"conj"})[-1:] or name(word)  # of "milk and egg wash", "egg"


# -- things in a row --------------------------------------------------------------------------------------------


def conjuncts(noun: Token) -> list[Token]:
    """What is coordinated with a noun, in the order of the text."""
    others = [child for child in children(noun, {"conj"}) if nominal(child)]
    others += [word for word in _words_of_name(noun) if _listed(word)]
    beside = children(noun.head, {noun.dep_, "npadvmod"}) if noun.dep_ in OBJECT else []
    others += [other for other in (*children(noun, {"appos"}), *beside) if _follows(other, noun)]
    return sorted({found for other in others for found in (other, *conjuncts(other))}, key=lambda token: token.i)


def _follows(other: Token, noun: Token) -> bool:
    """Whether a noun phrase goes on with a list without conjunctions: "a jack a wrench", "milk a pinch of salt"."""
    next_to_it = other.i > noun.i and other.left_edge.nbor(-1) in noun.subtree
    amount = any(child.lower_ == "of" for child in other.rights) and noun.pos_ in NOUN
    thing = other.pos_ in NOUN and introduced(other) and other.lemma_ not in CIRCUMSTANCES
    return next_to_it and thing and (amount or other.dep_ in OBJECT)


def _words_of_name(noun: Token) -> list[Token]:
    """The words that are labelled as parts of a name, and those of their names."""
    return [found for word in children(noun, NAME) if word.i < noun.i for found in (*_words_of_name(word), word)]


def _listed(word: Token) -> bool:
    """Whether this is an object of its own, taken for a part of a name: "ice or wet roads", "eggs milk and bread"."""
    if any(other.pos_ == "ADJ" for other in children(word, {"conj"})):
        return word.pos_ in NOUN
    noun = word.head
    while noun.dep_ in NAME:
        noun = noun.head
    many = word.head == noun and len(children(noun, NAME)) > 2
    ends = word.tag_ == "NNS" or word.nbor(1).pos_ in {"ADJ", "NUM", "DET"} or many
    return word.pos_ in NOUN and ends and bool(children(noun, {"conj"}))
