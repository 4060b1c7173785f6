import { describe, expect, test } from 'vitest';

import type { GroupResult, LeagueOpponent } from '../../../core/contract/contract.ts';
import { admitToLeague, drawOpponent, leagueAtStart, planSeats, scoreLeague } from '../../../core/plan/league.ts';
import { CONFIG, POSITION, PLAYED } from '../roles-run.ts';

const at = (step: number) => ({ ...POSITION.parent, step });

describe('a league', () => {
  test('begins with the first checkpoint, takes one in every `every` steps, and keeps the newest', () => {
    let { league = {} } = leagueAtStart(CONFIG, at(0));
    for (const step of [1, 2, 3, 4, 5, 6, 7]) league = admitToLeague(CONFIG, league, at(step));
    expect(league['past']?.map(({ checkpoint }) => checkpoint.step)).toEqual([2, 4, 6]);
  });

  test('a step without a commit admits the next one instead', () => {
    const { league = {} } = leagueAtStart(CONFIG, at(0));
    const later = admitToLeague(CONFIG, admitToLeague(CONFIG, league, at(1)), at(3));
    expect(later['past']?.map(({ checkpoint }) => checkpoint.step)).toEqual([0, 3]);
  });

  test('draws the same opponent for one place, and others elsewhere', () => {
    const drawn = (group: number) => drawOpponent(CONFIG, POSITION, { role: 'past', group }).checkpoint.step;
    const first = Array.from({ length: 40 }, (_, group) => drawn(group));
    expect(Array.from({ length: 40 }, (_, group) => drawn(group))).toEqual(first);
    expect(new Set(first)).toEqual(new Set([0, 2]));
  });

  test('draws an opponent that is beaten more rarely', () => {
    const meetings = (scores: readonly Omit<LeagueOpponent, 'checkpoint'>[]) => {
      const league = { past: scores.map((score, index) => ({ checkpoint: at(index), ...score })) };
      const steps = Array.from({ length: 400 }, (_, group) =>
        drawOpponent(CONFIG, { step: 4, league }, { role: 'past', group }),
      );
      return scores.map((_, step) => steps.filter(({ checkpoint }) => checkpoint.step === step).length);
    };
    const [beaten = 0, even = 0, strong = 0] = meetings([
      { played: 10, won: 10 },
      { played: 0, won: 0 },
      { played: 10, won: 1 },
    ]);
    expect(beaten).toBeGreaterThan(0);
    expect(beaten).toBeLessThan(even);
    expect(even).toBeLessThan(strong);
  });

  test('counts a win as 1, a draw as ½, and leaves out attempts in which a role did not play', () => {
    const [group] = PLAYED as [GroupResult];
    const met = drawOpponent(CONFIG, POSITION, { role: 'past', group: 0 });
    const played = [{ ...group, group: 0, roleRewards: { white: [1, 0, -1, null], past: [-1, 0, 1, -1] } }];
    const scored = scoreLeague(CONFIG, POSITION, played)?.['past'];
    const own = scored?.find(({ checkpoint }) => checkpoint.step === met.checkpoint.step);
    expect(own).toMatchObject({ played: met.played + 3, won: met.won + 1.5 });
    expect(scored?.filter((opponent) => opponent !== own)).toEqual(
      POSITION.league?.['past']?.filter((opponent) => opponent !== met),
    );
  });

  test('seats the drawn checkpoint, and a frozen one in every group', () => {
    const seats = planSeats(CONFIG, POSITION, 3);
    const { checkpoint } = drawOpponent(CONFIG, POSITION, { role: 'past', group: 3 });
    expect(seats).toEqual({
      past: { checkpoint, policy: 'b' },
      old: { checkpoint: { ...at(0), run: 'elsewhere' }, policy: 'main' },
    });
  });
});
