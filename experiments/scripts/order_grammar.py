"""What a model may write: edges "step0 -> step2 ;" between the given steps, one after the other, then the end.

An edge is free while neither of its steps is known to come before the other. So nothing is said twice, no circle can
close, and whatever the model prefers, what it has written is a partial order of the given steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, permutations

import numpy as np
from numpy.typing import NDArray

from experiments.scripts.proscript import Edge
from msg2.errors import InputError


@dataclass(frozen=True)
class OrderGrammar:
    """The tokens of every edge between the steps of a task, none of them the beginning of another's.

    >>> grammar = OrderGrammar.of(2, lambda text: list(text.encode()), end=0, most=9)
    >>> bytes(grammar.encode_edges([(1, 0)]))
    b'step1->step0;\\x00'
    >>> bytes(grammar.allowed_tokens(b"step"))
    b'01'
    """

    steps: int
    tokens: Mapping[Edge, tuple[int, ...]]
    end: int
    """The token after the last edge."""
    most: int
    """Edges in an order."""

    @staticmethod
    def of(steps: int, encode: Callable[[str], Sequence[int]], *, end: int, most: int) -> OrderGrammar:
        """The grammar for so many steps, in the tokens that `encode` turns a word into.

        Parameters
        ----------
        steps : int
            How many.
        encode : callable
            From a word to its tokens.
        end : int
            The token after the last edge.
        most : int
            Edges at most.

        Returns
        -------
        OrderGrammar
            The grammar.
        """
        names = [tuple(encode(f"step{number}")) for number in range(steps)]
        arrow, stop = tuple(encode("->")), tuple(encode(";"))
        tokens = {(a, b): names[a] + arrow + names[b] + stop for a, b in permutations(range(steps), 2)}
        for one, other in pairwise(sorted(tokens.values())):
            if other[: len(one)] == one:
                raise InputError(f"the tokens of the model cannot tell {steps} steps apart")
        return OrderGrammar(steps, tokens, end, most)

    def encode_edges(self, edges: Iterable[Edge]) -> list[int]:
        """The tokens of an order."""
        return [*(token for edge in edges for token in self.tokens[edge]), self.end]

    def decode_edges(self, tokens: Iterable[int]) -> list[Edge]:
        """The order that was written with these tokens, up to the end."""
        edges, rest = self._split(tokens)
        if rest[:1] != (self.end,):
            raise ValueError(f"the tokens {rest} are no edge")
        return edges

    def allowed_tokens(self, tokens: Iterable[int]) -> list[int]:
        """The tokens that may follow these; the end, where nothing else can."""
        edges, rest = self._split(tokens)
        free = self._free(edges)
        following = {word[len(rest)] for edge, word in self.tokens.items() if free[edge] and word[: len(rest)] == rest}
        return sorted(following if rest and following else {*following, self.end})

    def _split(self, tokens: Iterable[int]) -> tuple[list[Edge], tuple[int, ...]]:
        """The whole edges that the tokens begin with, and the tokens that are left."""
        edges: list[Edge] = []
        rest: tuple[int, ...] = ()
        for token in tokens:
            rest = (*rest, token)
            if rest in self._edges:
                edges.append(self._edges[rest])
                rest = ()
        return edges, rest

    def _free(self, edges: Sequence[Edge]) -> NDArray[np.bool_]:
        """Shape (steps, steps): the edges that may still be written."""
        if len(edges) >= self.most:
            return np.zeros((self.steps, self.steps), dtype=np.bool_)
        reach = np.eye(self.steps, dtype=np.bool_)
        for first, second in edges:
            reach |= np.outer(reach[:, first], reach[second])
        free: NDArray[np.bool_] = ~(reach | reach.T)
        return free

    @cached_property
    def _edges(self) -> dict[tuple[int, ...], Edge]:
        return {word: edge for edge, word in self.tokens.items()}
