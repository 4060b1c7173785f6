/** Everything that a judge has to know: the game, and how its turns stand there. */
export const RUBRIC = `The agent plays tic-tac-toe as x and moves first, against an opponent o. Each conversation is one turn of the same game: the board before the move, nine characters row by row, in which a free cell shows its own number from 1 to 9, and the answer, which must be the number of a free cell and nothing else. The turns of an attempt stand in the order of play. A game ends with a line of three, a full board or an illegal answer; the opponent's last move is not shown.
- An answer to the last board that completes a line of three x has won: 1.
- An answer to the last board that fills the board without such a line is a draw: 0.5.
- An answer to the last board that leaves free cells and no line has lost, for the opponent completed a line after it: 0.
- An answer to the last board that is not the number of a free cell is illegal: 0.
- Games that ended alike are worth the same, however many turns they took. Say what was overlooked on the way: a winning cell, or a cell for the opponent to win on.`;
