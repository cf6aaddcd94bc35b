"""Which guesses an output could take, seen without drawing any."""

from __future__ import annotations

from collections.abc import Collection

from ..grammar.forced import Encode
from ..grammar.spec import GrammarMatcher


class Follower:
    """Goes ahead of an output, along guesses. Its matcher is a fork of the output's own.

    `coming` are tokens that the grammar forces, the next one last. `limit` is how many tokens
    are worth a row: one that ends the output is not, since nothing is drawn after it.
    """

    __slots__ = ("_coming", "_encode", "_end_ids", "_last_id", "_matcher", "limit")

    def __init__(
        self,
        matcher: GrammarMatcher | None,
        coming: list[int],
        last_id: int | None,
        limit: int,
        end_ids: Collection[int],
        encode: Encode,
    ) -> None:
        self._matcher = matcher
        self._coming = coming
        self._last_id = last_id
        self._end_ids = end_ids
        self._encode = encode
        self.limit = limit

    def forced(self) -> int | None:
        """Give the token that must come next; None where there is a choice.

        Raises: RequestError as the matcher does.
        """
        if not self._coming and self._matcher is not None:
            self._coming = [*reversed(self._matcher.forced_tokens(self._last_id, self._encode))]
        return self._coming[-1] if self._coming else None

    def take(self, token_id: int) -> bool:
        """Go on by a token; False if it may not come, or ends the output.

        Raises: RequestError as the matcher does.
        """
        if self.limit <= 0 or token_id in self._end_ids:
            return False
        matcher = self._matcher
        if matcher is not None and (not matcher.accept(token_id) or matcher.is_finished):
            return False
        if self._coming:
            self._coming.pop()
        self.limit -= 1
        self._last_id = token_id
        return True
