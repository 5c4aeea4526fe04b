"""Verb phrases in narration: "crack and whisk the eggs" -> "crack eggs", "whisk eggs", each with its time.

A spaCy model parses the text; the rest are rules on its parse: which noun is the object of a verb (`direct_objects`,
`noun_phrases`), what belongs to the phrase (`grammar`), and which tags are wrong in speech (`tag_correction`).
"""

from msg2.media.verb_phrases.extractor import VerbPhraseExtractor

__all__ = ["VerbPhraseExtractor"]
