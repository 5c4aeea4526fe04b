"""The object of a verb in a parsed clause, by its labels and by what English leaves out; and the name of a thing.

The parse is spaCy's, with the labels of its English models (dobj, prt, pobj) or of Universal Dependencies (obj,
compound:prt, obl with case). The object is the first of these that there is:

- what is labelled so, unless it is the recipient ("show you how"); a relative pronoun stands for the noun before it;
- the subject of a passive ("the eggs are whisked", "get ripped") or of a result ("have the boards cut"), the noun
  before a participle ("the jack used here") or before a relative clause ("the nuts you have to remove");
- the subject of a complement clause ("allow you to lift", "make it thicker"), and what speech without full stops makes
  look like that ("remove the nuts take the tire off");
- what follows a particle that is taken for a preposition: "stir in the sugar";
- the object of the next verb: "crack and whisk the eggs".

Questions and clauses are no objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spacy.tokens import Token

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
    """Return the children of a token that have one of these dependency labels."""
    return [child for child in token.children if child.dep_ in labels]


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


def conjuncts(noun: Token) -> list[Token]:
    """Return what is coordinated with a noun, in the order of the text."""
    others = [child for child in children(noun, {"conj"}) if is_nominal(child)]
    others += [word for word in _compound_words(noun) if _is_list_item(word)]
    beside = children(noun.head, {noun.dep_, "npadvmod"}) if noun.dep_ in OBJECT else []
    others += [other for other in (*children(noun, {"appos"}), *beside) if _continues_list(other, noun)]
    return sorted({item for other in others for item in (other, *conjuncts(other))}, key=lambda token: token.i)


def _continues_list(other: Token, noun: Token) -> bool:
    """Whether a noun phrase goes on with a list without conjunctions: "a jack a wrench", "milk a pinch of salt"."""
    next_to_it = other.i > noun.i and other.left_edge.nbor(-1) in noun.subtree
    amount = any(child.lower_ == "of" for child in other.rights) and noun.pos_ in NOUN
    thing = other.pos_ in NOUN and has_determiner(other) and other.lemma_ not in CIRCUMSTANCES
    return next_to_it and thing and (amount or other.dep_ in OBJECT)


def _compound_words(noun: Token) -> list[Token]:
    """The words that are labelled as parts of a name, and those of their names."""
    return [part for word in children(noun, NAME) if word.i < noun.i for part in (*_compound_words(word), word)]


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


RELATIVE = {"relcl", "acl:relcl"}
PARTICLE = {"prt", "compound:prt"}
_PASSIVE = {"auxpass", "aux:pass"}
_PASSIVE_SUBJECT = {"nsubjpass", "nsubj:pass"}
_SUBJECT = {"nsubj", "csubj", *_PASSIVE_SUBJECT}
_PARTICIPLE = {"VBN", "VBD"}

# Closed classes of English, where labels alone do not tell.
_PERSONS = {"me", "you", "ya", "him", "her", "us", "guys", "everybody", "everyone"}
_TELLING = {"show", "tell", "teach", "ask", "remind", "promise", "warn", "give"}
"""Verbs after which a person is who receives, not what is handled."""
_WANTING = {"want", "need", "like", "love", "prefer", "expect", "wish"}
"""Verbs of which a clause with "to" is the object: "want you to lift it"."""
_THINKING = {
    "let", "see", "watch", "hear", "feel", "think", "know", "hope", "say", "remember", "guess", "mean", "figure",
    "look", "believe", "notice", "decide", "happen", "realize", "suppose", "imagine", "bet", "assume", "ensure",
    "swear",
}  # fmt: skip
"""Verbs of which any clause is the object: "I think the pan is hot", "let it cool"."""
_CAUSING = {"make": {"VB"}, "have": _PARTICIPLE | {"VBG"}, "get": _PARTICIPLE | {"VBG"}}
"""Verbs that say nothing themselves before such a verb: "make it look good", "get the toast cooked"."""
_ADDING = {
    "put", "add", "pour", "stir", "mix", "fold", "throw", "toss", "crack", "whisk", "beat", "drop", "screw", "glue",
    "clamp", "slip", "turn", "switch",
}  # fmt: skip
"""Verbs that are nothing without an object: what follows the preposition of "put on the wheel" is one."""
_INTRANSITIVE = {"be", "go", "come", "let"}
_COMMENTING = {"see", "know", "imagine", "remember"}
_STATES = {"done", "stuck", "tired", "gone", "finished"}  # participles that are adjectives: "it is done"


def find_object(verb: Token) -> tuple[Token, Token | None]:
    """Find the verb whose prepositions go with the object (another one where it is shared), and the object, if any."""
    labelled = [child for child in children(verb, OBJECT) if is_nominal(child)]
    things = [thing for thing in labelled if not _is_recipient(thing, verb)]
    acts = verb.pos_ in {"VERB", "AUX"} and verb.lemma_ not in _INTRANSITIVE
    if not acts or _is_comment(verb) or _is_causative(verb, things):
        return verb, None
    if things:
        noun = _last_noun_of_compound(_noun_before_adjective(_choose_object(things)), verb)
        return verb, _resolve_relative_pronoun(noun, verb)
    if labelled:  # only a recipient; the object may stand before: "the trick I showed you"
        return verb, _unlabelled_object(verb) or _object_of_governing_verb(verb)
    thing = _unlabelled_object(verb) or _subject_of_complement_clause(verb) or _object_after_particle(verb)
    return (verb, thing) if thing is not None else _shared_object(verb)


def _choose_object(things: list[Token]) -> Token:
    """Of several labelled objects, the first that begins a noun phrase of its own, after who receives them.

    "cook me an egg", "check your owners manual" and, as a list, "you need a jack a wrench and a tire"; but what follows
    "rip these down" belongs to something else.
    """
    if any(things[0].i < particle.i < things[-1].i for particle in children(things[0].head, PARTICLE)):
        return things[0]
    nouns = [thing for thing in things if thing.pos_ in NOUN] or things[-1:]
    return nouns[0] if all(map(has_determiner, nouns[1:])) else nouns[-1]


def _noun_before_adjective(thing: Token) -> Token:
    """The noun before an adjective that is taken for the object: "get the pan hot", "turn the nuts clockwise"."""
    nouns = children(thing, NAME | {"npadvmod"}) if thing.pos_ == "ADJ" or thing.lower_ == "guys" else []
    return nouns[-1] if nouns and nouns[-1].pos_ in NOUN else thing


def _last_noun_of_compound(noun: Token, verb: Token) -> Token:
    """The last noun of a name, where it is taken for a verb: "saw" of "use a table saw", "nuts" of "the wheel nuts"."""
    after = noun.nbor(1) if noun.i + 1 < len(noun.doc) else noun
    clause = after.dep_ == "ccomp" and after.head == verb and not children(after, OBJECT)
    ends = after.tag_ == "VBZ" or (after.tag_ == "VBD" and not after.lower_.endswith("ed"))
    return after if clause and ends and noun.tag_ == "NN" else noun


def _resolve_relative_pronoun(thing: Token, verb: Token) -> Token | None:
    """The object itself, or for a relative pronoun the noun that it stands for; None where nobody knows."""
    if not is_relative_pronoun(thing):
        return thing
    while verb.dep_ == "xcomp":
        verb = verb.head
    before = thing.nbor(-1) if thing.i and thing.tag_ == "WDT" else thing
    noun = verb.head if verb.dep_ in RELATIVE else before
    return noun if is_plain_nominal(noun) else None


def _is_recipient(thing: Token, verb: Token) -> bool:
    """Whether this is the person of "show you", "tell you guys"."""
    person = thing.lower_ in _PERSONS or any(child.lower_ in _PERSONS for child in thing.children)
    return person and verb.lemma_ in _TELLING


def _is_comment(verb: Token) -> bool:
    """Whether this is the verb of "as you can see", which takes no part in what is said."""
    return verb.lemma_ in _COMMENTING and any(child.lower_ == "as" for child in children(verb, {"mark"}))


def _is_causative(verb: Token, things: list[Token]) -> bool:
    """Whether this is the first verb of "get the toast cooked"; what is done is the second one."""
    after = [child for thing in things for child in children(thing, {"acl"}) if verb.lemma_ == "get"]
    if things and verb.lemma_ in {"have", "get"}:
        after += children(verb, {"ccomp"})
    return any(child.tag_ in _PARTICIPLE and not children(child, _SUBJECT | {"aux", "mark"}) for child in after)


def _unlabelled_object(verb: Token) -> Token | None:
    """The object of a verb that is not labelled as such: the subject of a passive, the noun before a participle …"""
    if verb.lower_ in _STATES:
        return None
    if subjects := children(verb, _PASSIVE_SUBJECT):
        return _resolve_relative_pronoun(subjects[-1], verb)
    if children(verb, _PASSIVE) and verb.dep_ == "xcomp":
        return _raised_subject(verb)
    participle = verb.tag_ in _PARTICIPLE and not children(verb, {"aux", "mark"})
    if participle and verb.dep_ in {"acomp", "conj"} and verb.head.lemma_ == "be":  # "the shelf is old and painted red"
        return _subject(verb.head)
    if participle and verb.dep_ == "conj" and not children(verb, _SUBJECT):
        return _unlabelled_object(verb.head) if children(verb.head, _PASSIVE) else None
    if participle and verb.dep_ == "ccomp" and verb.head.lemma_ in {"have", "get"}:
        return next(iter(children(verb, {"nsubj"}) or children(verb.head, OBJECT)), None)
    if participle and verb.dep_ == "acl" and is_nominal(verb.head):
        return verb.head
    if verb.tag_ == "VB" and verb.dep_ == "compound":  # an order, taken for a part of the name: "drill holes"
        return verb.head
    return _noun_before_relative_clause(verb)


def _raised_subject(verb: Token) -> Token | None:
    """The subject of "the bolts need to be tightened" or "it is ready to be flipped"."""
    clause = verb
    while clause.dep_ in {"xcomp", "acomp"} and not children(clause, {"nsubj"}):
        clause = clause.head
    return _subject(clause)


def _subject(clause: Token) -> Token | None:
    return next((_resolve_relative_pronoun(subject, clause) for subject in children(clause, {"nsubj"})), None)


def _object_of_governing_verb(verb: Token) -> Token | None:
    """The object of the verb before in "I have something to show you"."""
    if verb.dep_ != "advcl" or not _is_infinitive(verb):
        return None
    return next((thing for thing in children(verb.head, OBJECT) if thing.i < verb.i), None)


def _noun_before_relative_clause(verb: Token) -> Token | None:
    """The noun before a relative clause in which this verb lacks an object: "the nuts you have to remove"."""
    if verb.tag_ == "VBP" and verb.dep_ in {"prep", "intj"}:  # "any bread you like"
        return next(iter(children(verb.head, OBJECT)), None)
    clause = verb
    while clause.dep_ == "xcomp" and not children(clause.head, OBJECT):
        clause = clause.head
    if clause.dep_ not in RELATIVE or not is_nominal(clause.head) or clause.head.lemma_ in CIRCUMSTANCES:
        return None
    subjects = children(clause, _SUBJECT)
    complete = children(verb, {"xcomp", "ccomp", "acomp", "attr"}) or any(map(is_bare_preposition, verb.children))
    words = (*clause.children, *verb.children)
    other_gap = any(map(is_relative_pronoun, subjects)) or any(word.tag_ == "WRB" for word in words)
    return clause.head if (subjects or _is_infinitive(clause)) and not complete and not other_gap else None


def _subject_of_complement_clause(verb: Token) -> Token | None:
    """The object of "allow you to lift" or "make it thicker", labelled as a part of the clause that follows."""
    for clause in children(verb, {"ccomp"} if verb.lemma_ not in _THINKING | _TELLING else set()):
        first = next((word for word in clause.lefts if word.i > verb.i and word.dep_ in {"nsubj", "mark"}), None)
        if first is None:
            continue
        if first.dep_ == "mark":  # "use that I'm going to ..."
            if first.lower_ == "that" and first.i == verb.i + 1 and verb.lemma_ not in _WANTING:
                return first
        elif is_nominal(first) and not _is_finite_clause(clause, first) and _takes_subject(verb, first, clause):
            return _last_noun_of_compound(first, verb)
    return None


def _is_finite_clause(clause: Token, subject: Token) -> bool:
    """Whether a clause has a verb that agrees with its subject, or is a question: "I find it makes sense"."""
    helped = any(child.tag_ != "TO" and child.lower_ != "do" for child in children(clause, {"aux", "cop", *_PASSIVE}))
    asked = any(token.tag_.startswith("W") for token in clause.subtree if token.i < clause.i)
    return helped or asked or clause.lemma_ == "be" or (clause.tag_ == "VBZ" and subject.pos_ == "PRON")


def _takes_subject(verb: Token, thing: Token, clause: Token) -> bool:
    """Whether the verb has the subject of the clause as its object, and not the whole clause."""
    if verb.lemma_ in _WANTING:
        return not _is_infinitive(clause)
    if thing.lower_ == "you" and verb.lemma_ != "help":
        return _is_infinitive(clause)
    return clause.tag_ not in _CAUSING.get(verb.lemma_, ())


def _object_after_particle(verb: Token) -> Token | None:
    """The object of "put on the wheel" and "stir in the sugar", where a particle is taken for a preposition."""
    for child in children(verb, {"prep"}):
        if child.i == verb.i + 1 and (child.tag_ == "RP" or (verb.lemma_ in _ADDING and child.lower_ in {"in", "on"})):
            return next(filter(is_plain_nominal, children(child, {"pobj"})), None)
    return None


def _shared_object(verb: Token) -> tuple[Token, Token | None]:
    """The object of the next verb, where nothing but conjunctions, adverbs and "do not" stand between."""
    for follower in children(verb, {"conj"} if verb.lemma_ != "try" else set()):  # "try and lift it"
        words = verb.doc[verb.i + 1 : follower.i]
        near = all(word.pos_ in {"CCONJ", "PUNCT", "ADV"} or word.dep_ in {"conj", "aux", "neg"} for word in words)
        if near and follower.pos_ == "VERB" and not children(follower, _SUBJECT):
            return find_object(follower)
    return verb, None


def is_bare_preposition(token: Token) -> bool:
    """Whether this is a preposition on its own, as in "put it in"."""
    inside = [child for child in token.children if child.tag_ not in {"VBG", "VB"}]
    return token.dep_ == "prep" and not any(is_nominal(child) or child.dep_ != "pobj" for child in inside)


def _is_infinitive(verb: Token) -> bool:
    return any(child.tag_ == "TO" for child in verb.children)
