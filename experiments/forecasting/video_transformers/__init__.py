"""Transformers that predict the next step from the history of a video (Sec. 5.2): STAM, ViViT, and one of ours.

`labelled_videos` holds frames, sentences and labels, `step_histories` what is known of them before each step;
`networks` and `network_training` learn.
"""
