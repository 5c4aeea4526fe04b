"""Mistakes in CaptainCook4D recordings, found while they happen."""
