"""Video and sound -> arrays: features of frames and sentences, and the store that keeps them."""
