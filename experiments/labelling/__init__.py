"""Drafts of labels from real narration: how often a drafted time is right, and what a graph of drafts is worth."""
