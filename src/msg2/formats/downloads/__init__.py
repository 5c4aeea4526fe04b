"""Public annotation sets: a catalogue of them, and their download from their home pages."""
