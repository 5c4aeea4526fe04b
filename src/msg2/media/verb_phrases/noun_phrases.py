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


def is_nominal(token: Token) -> bool:
    """Whether this can be an object: a noun, or what stands for one ("take two", "in half")."""
    if token.tag_ == "PRP$" or (token.tag_ in ("DT", "PRP") and token.lower_ in _NO_OBJECTS):
        return False
    named = token.pos_ == "VERB" and children(token, {"det", "poss", "amod", "compound"})
    that = token.tag_ == "IN" and token.lower_ == "that"
    stands = token.pos_ == "ADJ" or that or (named and not children(token, OBJECT))
    return token.pos_ in _NOMINAL or (token.dep_ in OBJECT | {"pobj"} and bool(stands))


def is_relative_pronoun(token: Token) -> bool:
    """Whether this is a relative or interrogative pronoun."""
    return token.tag_ in {"WDT", "WP", "WP$"}


def is_plain_nominal(token: Token) -> bool:
    """Whether this can be an object, and is no relative or interrogative pronoun."""
    return is_nominal(token) and not is_relative_pronoun(token)


def has_determiner(noun: Token) -> bool:
    """Whether a noun phrase begins before this noun: "a jack", "your jack", "two jacks"."""
    return any(child.dep_ in {"det", "poss", "nummod"} for child in noun.lefts)


def children(token: Token, labels: set[str]) -> list[Token]:
    """Return the children of a token that have one of these dependency labels.

    Parameters
    ----------
    token : spacy.tokens.Token
        The word that they hang on.
    labels : set of str
        Dependency labels.

    Returns
    -------
    list of spacy.tokens.Token
        In the order of the text.
    """
    return [child for child in token.children if child.dep_ in labels]


# -- names ------------------------------------------------------------------------------------------------------


def compound_name(noun: Token) -> list[Token]:
    """Return a noun after the nouns that belong to its name: "lug nuts", but not "inch" of "two inch screws"."""
    if noun.pos_ == "VERB" and noun.dep_ == "ccomp":  # "a table saw"
        return [*compound_name(noun.nbor(-1)), noun]
    labelled = [word for word in noun.lefts if word.dep_ in NAME or (word.dep_ == "amod" and word.pos_ in NOUN)]
    parts = [part for word in labelled for part in _name_words(word)]
    if noun.dep_ in OBJECT and noun.pos_ in NOUN:  # "your owners manual": may be taken for two objects
        between = {token for token in noun.lefts if token.dep_ == "amod"}
        before = noun.nbor(-1 - len(between)) if noun.i > len(between) else noun.head
        if before.dep_ == noun.dep_ and before.head == noun.head and before.pos_ in NOUN:
            parts = [*compound_name(before), *parts]
    return [*parts, noun]


def _name_words(word: Token) -> list[Token]:
    hyphenated = word.nbor(1).text == "-" and not word.whitespace_  # the whole of "roll-ups" comes with "ups"
    measure = word.lower_ in _MEASURES or children(word, {"nummod", "case"})
    if word.pos_ not in NOUN or hyphenated or measure or _is_list_item(word):
        return []
    return children(word, {"conj"})[-1:] or compound_name(word)  # of "milk and egg wash", "egg"


# -- things in a row --------------------------------------------------------------------------------------------


def conjuncts(noun: Token) -> list[Token]:
    """Return what is coordinated with a noun, in the order of the text."""
    others = [child for child in children(noun, {"conj"}) if is_nominal(child)]
    others += [word for word in _compound_words(noun) if _is_list_item(word)]
    beside = children(noun.head, {noun.dep_, "npadvmod"}) if noun.dep_ in OBJECT else []
    others += [other for other in (*children(noun, {"appos"}), *beside) if _continues_list(other, noun)]
    return sorted({found for other in others for found in (other, *conjuncts(other))}, key=lambda token: token.i)


def _continues_list(other: Token, noun: Token) -> bool:
    """Whether a noun phrase goes on with a list without conjunctions: "a jack a wrench", "milk a pinch of salt"."""
    next_to_it = other.i > noun.i and other.left_edge.nbor(-1) in noun.subtree
    amount = any(child.lower_ == "of" for child in other.rights) and noun.pos_ in NOUN
    thing = other.pos_ in NOUN and has_determiner(other) and other.lemma_ not in CIRCUMSTANCES
    return next_to_it and thing and (amount or other.dep_ in OBJECT)


def _compound_words(noun: Token) -> list[Token]:
    """The words that are labelled as parts of a name, and those of their names."""
    return [found for word in children(noun, NAME) if word.i < noun.i for found in (*_compound_words(word), word)]


def _is_list_item(word: Token) -> bool:
    """Whether this is an object of its own, taken for a part of a name: "ice or wet roads", "eggs milk and bread"."""
    if any(other.pos_ == "ADJ" for other in children(word, {"conj"})):
        return word.pos_ in NOUN
    noun = word.head
    while noun.dep_ in NAME:
        noun = noun.head
    many = word.head == noun and len(children(noun, NAME)) > 2
    ends = word.tag_ == "NNS" or word.nbor(1).pos_ in {"ADJ", "NUM", "DET"} or many
    return word.pos_ in NOUN and ends and bool(children(noun, {"conj"}))
