import { describe, expect, test } from 'vitest';
import {
  EMPTY_BOARD,
  freeCells,
  hasWon,
  parseMove,
  place,
  randomOpponent,
  renderBoard,
} from '../../examples/tic-tac-toe/game.ts';

describe('the board', () => {
  test('a free cell shows its own number', () => {
    expect(renderBoard(EMPTY_BOARD)).toBe('123456789');
    expect(renderBoard('.x..o....')).toBe('1x34o6789');
  });

  test('a stone is placed and its cell is no longer free', () => {
    const board = place(EMPTY_BOARD, 4, 'x');
    expect(board).toBe('....x....');
    expect(freeCells(board)).toEqual([0, 1, 2, 3, 5, 6, 7, 8]);
  });

  test.each(['xxx......', '...xxx...', '......xxx', 'x..x..x..', '.x..x..x.', '..x..x..x', 'x...x...x', '..x.x.x..'])(
    '%s is a win for x alone',
    (board) => {
      expect(hasWon(board, 'x')).toBe(true);
      expect(hasWon(board, 'o')).toBe(false);
    },
  );

  test('a full board without a line is no win', () => {
    expect(hasWon('xoxxoxoxo', 'x')).toBe(false);
    expect(hasWon('xoxxoxoxo', 'o')).toBe(false);
  });
});

describe('a move', () => {
  test('is the digit of a free cell', () => {
    expect(parseMove('3', '.x..o....')).toBe(2);
  });

  test.each([null, '', '2', '5', '0', '10', '33', ' 3', '3 ', 'x', 'three', '٣'])('%j is illegal', (answer) => {
    expect(parseMove(answer, '.x..o....')).toBeNull();
  });
});

describe('the opponent', () => {
  test('plays the same game for one seed, and other games for others', () => {
    expect(randomOpponent(7)('x........')).toBe(randomOpponent(7)('x........'));
    const firstMoves = new Set(Array.from({ length: 100 }, (_, seed) => randomOpponent(seed)('x........')));
    expect([...firstMoves].toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  test('takes free cells only', () => {
    const opponent = randomOpponent(3);
    for (let round = 0; round < 50; round++) expect([2, 7]).toContain(opponent('xo.oxox.x'));
  });
});
