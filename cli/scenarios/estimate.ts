/** Tokens and dollars that scenarios will cost, as a range: nobody knows how much a model will say. */
import { formatUsd } from '../../core/judge-spending.ts';
import type { PricedModel } from '../../play/hosted/hosted-ledger.ts';
import { plural } from '../../core/format.ts';
import { MOST_PER_ROUND, planProposals } from './make-scenarios.ts';
import type { MakePlan } from './make-plan.ts';
import { proposeQuestion } from './propose.ts';

export interface Range {
  readonly low: number;
  readonly high: number;
}

export interface CostEstimate {
  readonly calls: Range;
  readonly tokens: Range;
  /** Null if a price is unknown. */
  readonly usd: Range | null;
}

/** A kind of call: how many there are, and the tokens of all of them. */
export interface Calls {
  readonly model: PricedModel;
  readonly calls: Range;
  readonly prompt: Range;
  readonly completion: Range;
}

const CHARACTERS_OF_TOKEN = 4;
/** Tokens of one scenario as it is written; a model that thinks first takes more. */
const SCENARIO: Range = { low: 40, high: 250 };
const VERDICT = { prompt: { low: 500, high: 5000 }, completion: { low: 40, high: 400 } };
const ANSWER = { prompt: { low: 80, high: 800 }, completion: { low: 50, high: 1500 } };
/** Tokens of one turn with tools. */
const TURN: Range = { low: 60, high: 600 };
const LEAST_TURNS = 2;

export function estimateCost(plan: MakePlan): CostEstimate {
  return addUp([...proposing(plan), ...trying(plan), ...judging(plan)]);
}

function proposing(plan: MakePlan): Calls[] {
  const count = planProposals(plan);
  const rounds = Math.ceil(count / MOST_PER_ROUND);
  const { messages } = proposeQuestion({ ...plan, count: Math.min(count, MOST_PER_ROUND), round: 1, known: [] });
  const prompt = tokensOf(messages.map(({ content }) => content).join('\n')) * rounds;
  return [
    {
      model: plan.model,
      calls: { low: rounds, high: rounds + 1 },
      prompt: { low: prompt, high: 2 * prompt + rounds * count * SCENARIO.low },
      completion: times(SCENARIO, count),
    },
  ];
}

/** Answers of the local stack cost nothing. */
function trying({ tryWith, origin, maxTurns, ...plan }: MakePlan): Calls[] {
  const attempts = planProposals(plan) * plan.attempts;
  const { hosted, price } = tryWith;
  if (hosted === null || attempts === 0) return [];
  const model = { hosted, price };
  if (origin.kind === 'task') {
    const calls = { low: attempts, high: attempts };
    return [{ model, calls, prompt: times(ANSWER.prompt, attempts), completion: times(ANSWER.completion, attempts) }];
  }
  const tools = tokensOf(JSON.stringify(origin.server.tools));
  const turns = { low: Math.min(LEAST_TURNS, maxTurns), high: maxTurns };
  // Each turn reads the ones before it.
  const prompt = {
    low: turns.low * (tools + TURN.low),
    high: turns.high * tools + (TURN.high * turns.high * (turns.high + 1)) / 2,
  };
  const completion = { low: turns.low * TURN.low, high: turns.high * TURN.high };
  return [
    {
      model,
      calls: { low: attempts * turns.low, high: attempts * turns.high },
      prompt: times(prompt, attempts),
      completion: times(completion, attempts),
    },
  ];
}

function judging({ model, ...plan }: MakePlan): Calls[] {
  const attempts = planProposals(plan) * plan.attempts;
  const calls = { low: attempts, high: attempts };
  return [{ model, calls, prompt: times(VERDICT.prompt, attempts), completion: times(VERDICT.completion, attempts) }];
}

export function addUp(kinds: readonly Calls[]): CostEstimate {
  const sum = (value: (kind: Calls) => Range): Range => ({
    low: kinds.reduce((total, kind) => total + value(kind).low, 0),
    high: kinds.reduce((total, kind) => total + value(kind).high, 0),
  });
  const isPriced = kinds.every(({ model }) => model.price !== null || model.hosted.isFree === true);
  return {
    calls: sum(({ calls }) => calls),
    tokens: sum(({ prompt, completion }) => ({
      low: prompt.low + completion.low,
      high: prompt.high + completion.high,
    })),
    usd: isPriced ? sum(usdOf) : null,
  };
}

function usdOf({ model: { price }, prompt, completion }: Calls): Range {
  const { prompt: input, completion: output } = price ?? { prompt: 0, completion: 0 };
  const usd = (bound: 'low' | 'high') => (input * prompt[bound] + output * completion[bound]) / 1e6;
  return { low: usd('low'), high: usd('high') };
}

function times({ low, high }: Range, factor: number): Range {
  return { low: low * factor, high: high * factor };
}

function tokensOf(text: string): number {
  return Math.ceil(text.length / CHARACTERS_OF_TOKEN);
}

/** `73 to 650 calls, 80000 to 2100000 tokens, $0.04 to $1.9` */
export function describeEstimate({ calls, tokens, usd }: CostEstimate): string {
  const dollars =
    usd === null ? 'at an unknown price (see --price)' : `$${formatUsd(usd.low)} to $${formatUsd(usd.high)}`;
  const least = calls.low === calls.high ? plural(calls.high, 'call') : `${calls.low} to ${plural(calls.high, 'call')}`;
  return `${least}, ${rounded(tokens.low)} to ${rounded(tokens.high)} tokens, ${dollars}`;
}

function rounded(tokens: number): string {
  return String(Number(tokens.toPrecision(2)));
}
