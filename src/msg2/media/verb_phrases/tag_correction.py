"""Part-of-speech tags that a model trained on written text gets wrong in speech, corrected with its dictionary.

In writing an imperative begins a sentence; in speech without full stops it follows anything, and is taken for a noun:
"turn the screw to the right raise the vehicle". Nouns before nouns are taken for adjectives ("cinnamon sugar"), and
the other way round ("crispy color").
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from msg2.media.verb_phrases.noun_phrases import OBJECT, Token, children

Doc: TypeAlias = Any
"""A `spacy.tokens.Doc`."""
Span: TypeAlias = Any
"""A `spacy.tokens.Span`."""

_DESCRIBED = {"NN", "NNP", "JJ", "JJR", "RB"}
_ACTIVE = {"VB", "VBP", "VBD"}
_OF_NOUNS = {"pobj", "dobj", "obj", "compound", "appos", "nmod"}
_DETERMINERS = {"det", "poss", "nummod", "predet"}
_SUBJECTS = {"nsubj", "nsubjpass", "nsubj:pass", "csubj", "expl"}
_PERSONS = {"i", "you", "he", "she", "we", "they"}
_ENDING = {"right", "left", "next"}
"""Adjectives that may end a sentence: "turn it to the right"."""


class PartOfSpeechDictionary(NamedTuple):
    """Base forms by part of speech, as a lemmatizer has them; without any, nothing is corrected."""

    nouns: frozenset[str] = frozenset()
    verbs: frozenset[str] = frozenset()
    adjectives: frozenset[str] = frozenset()

    @staticmethod
    def from_lemmatizer(lemmatizer: Any) -> PartOfSpeechDictionary:
        """Return the dictionary of spaCy's lemmatizer by rules; other lemmatizers have none."""
        if "lemma_index" not in lemmatizer.lookups:
            return PartOfSpeechDictionary()
        table = lemmatizer.lookups.get_table("lemma_index")
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
