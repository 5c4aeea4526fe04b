"""Learned graphs against known ones: worlds, random worlds, human task graphs; and what learning costs."""
