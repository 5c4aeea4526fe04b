"""Forecasts of the next step: rankers of labels, networks of videos, and how far ahead they see."""
