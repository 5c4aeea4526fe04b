"""From narration, step names and a few labels to drafts of labels, and which video to label next."""
