"""The object of a verb in a parsed clause, by its labels and by what English leaves out.

The parse is spaCy's, with the labels of its English models (dobj, prt, pobj) or of Universal Dependencies (obj,
compound:prt, obl with case). The object is the first of these that there is:

- what is labelled so, unless it is who is told ("show you how"); a relative pronoun stands for the noun before it;
- who bears it: the subject of a passive ("the eggs are whisked", "get ripped") or of a result ("have the boards cut"),
  the noun before a participle ("the jack used here") or before a clause with a gap ("the nuts you have to remove");
- who is brought to do or to be something: "allow you to lift", "make it thicker";
- what follows a particle that is taken for a preposition: "stir in the sugar";
- the object of the next verb: "crack and whisk the eggs".

Questions and clauses are no objects.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Token: TypeAlias = Any
"""A `spacy.tokens.Token`."""

OBJECT = {"dobj", "obj"}
NAME = {"compound", "nmod", "flat"}
RELATIVE = {"relcl", "acl:relcl"}
NOUN = {"NOUN", "PROPN", "X"}
_PASSIVE_SUBJECT = {"nsubjpass", "nsubj:pass"}
_SUBJECT = {"nsubj", "csubj", *_PASSIVE_SUBJECT}
_NOMINAL = NOUN | {"PRON", "NUM", "DET", "SYM"}
_PARTICIPLE = {"VBN", "VBD"}

# Closed classes of English, where labels alone do not tell.
_NO_OBJECTS = {"a", "an", "the", "i", "he", "she", "we", "they"}
_PERSONS = {"me", "you", "ya", "him", "her", "us"}
_TELLING = {"show", "tell", "teach", "ask", "remind", "promise", "warn", "give"}
"""Verbs after which a person is who receives, not what is handled."""
_WANTING = {"want", "need", "like", "love", "prefer", "expect", "wish", "let"}
"""Verbs of which a clause is the object: "want you to lift it"."""
_INTRANSITIVE = {"be", "go", "come"}
_ADDING = {"put", "add", "pour", "stir", "mix", "fold", "throw", "toss"}
"""Verbs that are nothing without an object: what follows the preposition of "put on the wheel" is one."""
_CAUSING = {"have", "get"}
_COMMENTING = {"see", "know", "imagine", "remember"}
_CIRCUMSTANCES = {"time", "way", "day", "moment", "reason", "place"}
"""Nouns whose relative clauses say when, where, how or why: "the way you drive" has no object."""


def object_of(verb: Token) -> tuple[Token, Token | None]:
    """The verb whose prepositions go with the object (another one where it is shared), and the object, if any."""
    labelled = [child for child in children(verb, OBJECT) if nominal(child)]
    things = [thing for thing in labelled if not _is_told(thing, verb)]
    if not _acts(verb) or _comments(verb) or _causes(verb, things):
        return verb, None
    if things:
        return verb, _known(_chosen(things), verb)
    if labelled:  # somebody is told something, maybe what stands before: "the trick I showed you"
        return verb, _borne(verb) or _offered(verb)
    found = _borne(verb) or _brought(verb) or _after_particle(verb)
    return (verb, found) if found is not None else _shared(verb)


def _acts(verb: Token) -> bool:
    """Whether this is a verb that can have an object; an order may be taken for a noun ("jack up the car")."""
    others = [other for other in children(verb, {"conj"}) if other.pos_ == "VERB"]  # "measure and cut the wood"
    order = verb.pos_ in NOUN and verb.is_sent_start and bool(children(verb, OBJECT) or others)
    return (verb.pos_ in ("VERB", "AUX") or order) and verb.lemma_ not in _INTRANSITIVE


def _chosen(things: list[Token]) -> Token:
    """Of several labelled objects, the first that begins a noun phrase of its own, after who receives them.

    "cook me an egg", "check your owners manual" and, as a list, "you need a jack a wrench and a tire".
    """
    nouns = [thing for thing in things if thing.pos_ in NOUN] or things[-1:]
    return nouns[0] if all(map(_introduced, nouns[1:])) else nouns[-1]


def _introduced(noun: Token) -> bool:
    return any(child.dep_ in {"det", "poss", "nummod"} for child in noun.lefts)


def _is_told(thing: Token, verb: Token) -> bool:
    """Whether this is the person of "show you", "tell you guys"."""
    person = thing.lower_ in _PERSONS or any(child.lower_ in _PERSONS for child in thing.children)
    return person and verb.lemma_ in _TELLING


def _comments(verb: Token) -> bool:
    """Whether this is the verb of "as you can see", which takes no part in what is said."""
    return verb.lemma_ in _COMMENTING and any(child.lower_ == "as" for child in children(verb, {"mark"}))


def _causes(verb: Token, things: list[Token]) -> bool:
    """Whether this is the first verb of "get the toast cooked"; what is done is the second one."""
    after = [child for thing in things for child in children(thing, {"acl"}) if verb.lemma_ == "get"]
    if things and verb.lemma_ in _CAUSING:
        after += children(verb, {"ccomp"})
    return any(child.tag_ in _PARTICIPLE and not children(child, _SUBJECT | {"aux", "mark"}) for child in after)


def _borne(verb: Token) -> Token | None:
    """Who bears what the verb says without being labelled as its object."""
    if subjects := children(verb, _PASSIVE_SUBJECT):
        return _known(subjects[-1], verb)
    if children(verb, {"auxpass", "aux:pass"}) and verb.dep_ == "xcomp":
        return _raised(verb)
    participle = verb.tag_ in _PARTICIPLE and not children(verb, {"aux", "mark"})
    if participle and verb.dep_ == "conj" and not children(verb, _SUBJECT):
        return _borne(verb.head) if children(verb.head, {"auxpass", "aux:pass"}) else None
    if participle and verb.dep_ == "ccomp" and verb.head.lemma_ in _CAUSING:
        return next(iter(children(verb, {"nsubj"}) or children(verb.head, OBJECT)), None)
    if participle and verb.dep_ == "acl" and nominal(verb.head):
        return verb.head
    if verb.tag_ == "VB" and verb.dep_ == "compound":  # an order, taken for a part of the name: "drill holes"
        return verb.head
    return _before_gap(verb)


def _raised(verb: Token) -> Token | None:
    """The subject of "the bolts need to be tightened" or "it is ready to be flipped"."""
    clause = verb
    while clause.dep_ in {"xcomp", "acomp"} and not children(clause, {"nsubj"}):
        clause = clause.head
    return next((_known(subject, clause) for subject in children(clause, {"nsubj"})), None)


def _offered(verb: Token) -> Token | None:
    """The object of the verb before in "I have something to show you"."""
    if verb.dep_ != "advcl" or not _infinitive(verb):
        return None
    return next((thing for thing in children(verb.head, OBJECT) if thing.i < verb.i), None)


def _before_gap(verb: Token) -> Token | None:
    """The noun before a relative clause in which this verb lacks an object: "the nuts you have to remove"."""
    clause = verb
    while clause.dep_ == "xcomp" and not children(clause.head, OBJECT):
        clause = clause.head
    if clause.dep_ not in RELATIVE or not nominal(clause.head) or clause.head.lemma_ in _CIRCUMSTANCES:
        return None
    subjects = children(clause, _SUBJECT)
    complete = children(verb, {"xcomp", "ccomp", "acomp", "attr"}) or any(map(without_object, verb.children))
    other_gap = any(map(asks, subjects)) or any(child.tag_ == "WRB" for child in clause.children)
    return clause.head if (subjects or _infinitive(clause)) and not complete and not other_gap else None


def _brought(verb: Token) -> Token | None:
    """The object of "allow you to lift" or "make it thicker", which the parser has as the subject of what follows."""
    if verb.lemma_ in _WANTING | _TELLING:
        return None
    for clause in children(verb, {"ccomp"}):
        described = clause.tag_.startswith(("JJ", "RB")) or (clause.tag_ == "VBN" and verb.lemma_ not in _CAUSING)
        finite = [child for child in children(clause, {"aux", "auxpass", "cop", "mark"}) if child.tag_ != "TO"]
        if (described or _infinitive(clause) or verb.lemma_ == "help") and not finite:
            for subject in children(clause, {"nsubj"}):
                return None if asks(subject) else subject
    return None


def _after_particle(verb: Token) -> Token | None:
    """The object of "put on the wheel" and "stir in the sugar", where a particle is taken for a preposition."""
    if verb.lemma_ in _ADDING and verb.i + 1 < len(verb.doc) and verb.nbor(1).lower_ in {"in", "on"}:
        return next((thing for thing in children(verb.nbor(1), {"pobj"}) if nominal(thing) and not asks(thing)), None)
    return None


def _shared(verb: Token) -> tuple[Token, Token | None]:
    """The object of the next verb, where nothing but conjunctions and adverbs stand between."""
    if verb.lemma_ != "try":  # "try and lift it"
        for follower in children(verb, {"conj"}):
            between = (token.dep_ in {"cc", "punct", "conj", "advmod"} for token in verb.doc[verb.i + 1 : follower.i])
            if follower.pos_ == "VERB" and not children(follower, _SUBJECT) and all(between):
                return object_of(follower)
    return verb, None


def _known(thing: Token, verb: Token) -> Token | None:
    """The object itself, or for a relative pronoun the noun that it stands for; None where nobody knows."""
    if not asks(thing):
        return thing
    while verb.dep_ == "xcomp":
        verb = verb.head
    return verb.head if verb.dep_ in RELATIVE and nominal(verb.head) else None


def conjuncts(noun: Token) -> list[Token]:
    """What is coordinated with a noun, in the order of the text."""
    others = [child for child in children(noun, {"conj"}) if nominal(child)]
    if noun.dep_ in OBJECT:  # a list without commas
        same = children(noun.head, {noun.dep_})
        others += [other for other in same if other.i > noun.i and other.pos_ in NOUN and _introduced(other)]
    others += [word for word in children(noun, NAME) if listed(word)]
    return sorted((found for other in others for found in (other, *conjuncts(other))), key=lambda token: token.i)


def listed(word: Token) -> bool:
    """Whether this is an object of its own, taken for a part of a name: "ice or wet roads", "eggs milk and bread"."""
    if any(other.pos_ == "ADJ" for other in children(word, {"conj"})):
        return word.pos_ in NOUN
    return word.tag_ == "NNS" and bool(children(word.head, {"conj"}))


# -- words ------------------------------------------------------------------------------------------------------


def nominal(token: Token) -> bool:
    """Whether this can be an object: a noun, or what stands for one ("take two", "in half")."""
    if token.tag_ == "PRP$" or (token.tag_ in ("DT", "PRP") and token.lower_ in _NO_OBJECTS):
        return False
    named = (
        token.pos_ == "VERB" and children(token, {"det", "poss", "amod", "compound"}) and not children(token, OBJECT)
    )
    return token.pos_ in _NOMINAL or (token.dep_ in OBJECT | {"pobj"} and bool(token.pos_ == "ADJ" or named))


def without_object(token: Token) -> bool:
    """Whether this is a preposition on its own, as in "put it in"."""
    return token.dep_ == "prep" and not any(nominal(child) or child.dep_ != "pobj" for child in token.children)


def asks(token: Token) -> bool:
    """Whether this is a relative or interrogative pronoun."""
    return token.tag_ in {"WDT", "WP", "WP$"}


def _infinitive(verb: Token) -> bool:
    return any(child.tag_ == "TO" for child in verb.children)


def children(token: Token, labels: set[str]) -> list[Token]:
    """The words that hang on this one by one of these labels, in the order of the text."""
    return [child for child in token.children if child.dep_ in labels]
