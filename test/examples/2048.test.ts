import { describe, expect, test } from 'vitest';
import { games, playGame, type Edition, type Player } from '../../examples/2048/play.ts';
import { highestTile, legalMoves, MOVES, slide, startGame, type Board } from '../../examples/2048/game.ts';
import { parseKey, parseMove, renderBoard, renderSmall } from '../../examples/2048/text.ts';

const board = (text: string): Board => text.split('').map((tile) => (tile === '.' ? 0 : Number(tile)));

describe('a slide', () => {
  test.each([
    ['left', '.1..1....', '1..1.....', 0],
    ['left', '1.1......', '2........', 4],
    ['left', '111......', '21.......', 4],
    ['right', '111......', '.12......', 4],
    ['up', '1..1..2..', '2..2.....', 4],
    ['down', '1..1..2..', '...2..2..', 4],
    ['right', '12.......', '.12......', 0],
  ] as const)('%s takes %s to %s for %d points', (move, before, after, points) => {
    expect(slide(board(before), move)).toEqual({ board: board(after), points });
  });

  test('merges a tile once: four equal ones become two', () => {
    expect(slide(board('1111............'), 'left')).toEqual({ board: board('22..............'), points: 8 });
    expect(slide(board('2211............'), 'left')).toEqual({ board: board('32..............'), points: 12 });
  });

  test('keeps the sum of the tiles', () => {
    const sum = (cells: Board) => cells.reduce((total, tile) => total + (tile === 0 ? 0 : 2 ** tile), 0);
    for (const { seed } of games(0, 50)) {
      const game = startGame(seed, 4);
      for (const move of MOVES) expect(sum(slide(game.board, move).board)).toBe(sum(game.board));
    }
  });
});

describe('a move', () => {
  test('is legal where it changes the board', () => {
    expect(legalMoves(board('1........'))).toEqual(['down', 'right']);
    expect(legalMoves(board('121212121'))).toEqual([]);
    expect(legalMoves(board('112212121'))).toEqual(['up', 'down', 'left', 'right']);
  });
});

describe('a game', () => {
  test('begins with two tiles, and is the same for one seed and another for others', () => {
    const first = startGame(5, 4);
    expect(first.board.filter((tile) => tile !== 0)).toHaveLength(2);
    expect(startGame(5, 4).board).toEqual(first.board);
    expect(startGame(5, 4).spawn(first.board, 3)).toEqual(first.spawn(first.board, 3));
    expect(new Set(games(0, 20).map(({ seed }) => startGame(seed, 4).board.join())).size).toBeGreaterThan(15);
  });

  test('puts each new tile on a free cell', () => {
    const { spawn } = startGame(1, 3);
    const before = board('12.12.121');
    const after = spawn(before, 0);
    const changed = after.flatMap((tile, place) => (tile === before[place] ? [] : [place]));
    expect(changed).toHaveLength(1);
    expect(before[changed[0]!]).toBe(0);
  });

  test('has the highest tile as its number', () => {
    expect(highestTile(board('..3......'))).toBe(8);
  });
});

const EDITION: Edition = { size: 3, turns: 12, goal: 16, par: 64 };
const firstLegal: Player = (cells) => Promise.resolve(legalMoves(cells)[0] ?? null);

describe('a game', () => {
  test('ends after its moves, and counts what was made', async () => {
    const { reward, metrics } = await playGame({ id: 'x', seed: 3 }, EDITION, firstLegal);
    expect(metrics).toMatchObject({ illegal: false, moves: 12 });
    expect(reward).toBeCloseTo(0.5 + 0.5 * Math.min(1, metrics.points / 64));
    expect(metrics.win).toBe(metrics.highest >= 16);
  });

  test('ends with an answer that is no move, and keeps what was earned', async () => {
    const fourTimes: Player = (cells, turn) => (turn < 4 ? firstLegal(cells, turn) : Promise.resolve(null));
    const { reward, metrics } = await playGame({ id: 'x', seed: 3 }, EDITION, fourTimes);
    expect(metrics).toMatchObject({ illegal: true, moves: 4 });
    expect(reward).toBeGreaterThanOrEqual(0.5 * (4 / 12));
  });

  test('ends with a move that changes nothing', async () => {
    const stubborn: Player = () => Promise.resolve('up');
    expect((await playGame({ id: 'x', seed: 3 }, EDITION, stubborn)).metrics).toMatchObject({ illegal: true });
  });

  test('pays looking ahead: who takes the most points beats who takes any move', async () => {
    const greedy: Player = (cells) => {
      const points = (move: (typeof MOVES)[number]) => slide(cells, move).points;
      return Promise.resolve(legalMoves(cells).toSorted((a, b) => points(b) - points(a))[0] ?? null);
    };
    const total = async (player: Player) => {
      const rewards = await Promise.all(games(0, 100).map(async (game) => playGame(game, EDITION, player)));
      return rewards.reduce((sum, { reward }) => sum + reward, 0);
    };
    const anyMove: Player = (cells, turn) => {
      const legal = legalMoves(cells);
      return Promise.resolve(legal[turn % legal.length] ?? null);
    };
    expect(await total(greedy)).toBeGreaterThan((await total(anyMove)) + 2);
  });
});

describe('as text', () => {
  test('a board in words has its numbers in columns', () => {
    expect(renderBoard(board('1...2...3'))).toBe('   2   .   .\n   .   4   .\n   .   .   8');
  });

  test('a small board is nine bytes, and the keys that may be pressed', () => {
    expect(renderSmall(board('1.2...3..'))).toBe('a.b...c...2.4.6.8.');
    expect(renderSmall(board('1........'))).toBe('a.........2...6...');
  });

  test.each([
    ['l', 'left'],
    [' Up. ', 'up'],
    ['right', 'right'],
    ['left, because', null],
    ['constructor', null],
    ['', null],
    [null, null],
  ])('the answer %j is %s', (answer, move) => {
    expect(parseMove(answer)).toBe(move);
  });

  test.each([
    ['2', 'down'],
    ['8', 'up'],
    ['5', null],
    ['22', null],
    [null, null],
  ])('the key %j is %s', (key, move) => {
    expect(parseKey(key)).toBe(move);
  });
});
