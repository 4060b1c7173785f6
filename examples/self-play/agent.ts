/** Learns tic-tac-toe by playing against itself: x and o are policies of their own, and meet older ones in a league. */
import { defineAgent, league, policy, type ModelClient } from 'temper-rl';
import { matches, MAX_TOKENS, playMatch, type Match } from './match.ts';

export default defineAgent({
  name: 'self-play',
  scenarios: matches(0, 4000, { withLeague: true }),
  // Held-out games are played by both sides of the run alone: each against the side that was never trained.
  evalScenarios: matches(1_000_000, 400, { withLeague: false }),

  roles: {
    x: policy(),
    o: policy('o'),
    'past-x': league({ every: 10, keep: 5 }),
    'past-o': league({ of: 'o', every: 10, keep: 5 }),
  },
  competing: true,

  async rollout({ scenario, roles }) {
    const sides = sidesOf(scenario);
    const { winner, metrics } = await playMatch(scenario, (stone, board) => move(roles[sides[stone]], board));
    const earned = (stone: 'x' | 'o') => (winner === null ? 0 : winner === stone ? 1 : -1);
    // A role that did not play in this game has no reward.
    const notPlayed = { x: null, o: null, 'past-x': null, 'past-o': null };
    return { roleRewards: { ...notPlayed, [sides.x]: earned('x'), [sides.o]: earned('o') }, metrics };
  },
});

/** The roles that play x and o in a match. */
function sidesOf({ against }: Match) {
  return {
    x: against === 'past-x' ? ('past-x' as const) : ('x' as const),
    o: against === 'past-o' ? ('past-o' as const) : ('o' as const),
  };
}

async function move({ openai, model }: ModelClient, board: string): Promise<string | null> {
  const messages = [{ role: 'user' as const, content: board }];
  const completion = await openai.chat.completions.create({ model, messages, max_tokens: MAX_TOKENS });
  return completion.choices[0]?.message.content ?? null;
}
