"""State prediction on worlds whose truth is known, from simulated features and from rendered videos."""
