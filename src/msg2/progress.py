"""Progress of long work, told to whoever shows it: a progress bar, a log, a web page."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """A function that is called from time to time while long work goes on."""

    def __call__(self, done: int, total: int | None, message: str) -> None:
        """Show how far the work is.

        Parameters
        ----------
        done : int
            Units of work that are done: videos, epochs, bytes.
        total : int or None
            Units in all; None where nobody knows.
        message : str
            What is being done, or how it stands, in a few words; it may be empty.
        """


def no_progress(done: int, total: int | None, message: str) -> None:
    """Show nothing: the default of every function that takes a `Progress`.

    Parameters
    ----------
    done, total, message
        As in `Progress`.
    """


def prefix_messages(progress: Progress, name: str) -> Progress:
    """Put a name in front of every message: that of the task, where there are several.

    Parameters
    ----------
    progress : Progress
        Is told what is done.
    name : str
        What it is done for.

    Returns
    -------
    Progress

    >>> prefix_messages(lambda done, total, message: print(message), "Make Coffee")(1, 2, "epoch 1")
    Make Coffee: epoch 1
    """
    return lambda done, total, message: progress(done, total, f"{name}: {message}")
