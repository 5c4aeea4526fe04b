"""Steps hidden from models that know the narration and the other labels of a video."""
