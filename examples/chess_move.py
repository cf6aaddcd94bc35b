"""A move in chess by regular expression: standard notation, and nothing else.

The expression says what a move looks like; whether it is legal here, it cannot know.

Run it: python examples/chess_move.py
"""

from __future__ import annotations

from plait import State, function, gen

SQUARE = "[a-h][1-8]"
PIECE = f"[KQRBN](?:[a-h]|[1-8])?x?{SQUARE}"  # Nf3, Nbd2, R1a3, Qxe7
PAWN = "(?:[a-h]x)?(?:[a-h][2-7]|[a-h][18]=[QRBN])"  # e4, exd5, e8=Q
MOVE = rf"(?:{PIECE}|{PAWN}|O-O-O|O-O)[+#]?"
GAME = "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6"


@function
def play(s: State, game: str, num_moves: int) -> None:
    """Go on with `game` for `num_moves` moves of white and black."""
    first = game.count(".") + 1
    s += game
    for number in range(first, first + num_moves):
        s += f" {number}. " + gen(f"white {number}", regex=MOVE, stop=" ", temperature=0)
        s += " " + gen(f"black {number}", regex=MOVE, stop=" ", temperature=0)


def main() -> None:
    """Print the game with two more moves of each side."""
    print(play.run(game=GAME, num_moves=2).text())


if __name__ == "__main__":
    main()
