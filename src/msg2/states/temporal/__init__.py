"""Transformers that foresee the next step from the history of a video (Sec. 5.2): STAM, ViViT, and one of ours.

`films` is what was shown and said, `moments` what is known of it before each step, `networks` and `training` learn.
"""
