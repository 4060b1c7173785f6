/** Colors over tokens: which numbers each shows, and how strong. */
import { formatNumber } from '../../core/reports/format.ts';
import type { TurnTokens } from '../../views/api/attempt-views.ts';

export const OVERLAYS = ['advantage', 'logprob', 'entropy', 'ratio', 'mask', 'none'] as const;
export type Overlay = (typeof OVERLAYS)[number];

export const OVERLAY_LABELS: Readonly<Record<Overlay, string>> = {
  advantage: 'Advantage',
  logprob: 'Log-probability',
  entropy: 'Entropy',
  ratio: 'Ratio',
  mask: 'Mask',
  none: 'Text only',
};

/** Shades of each color. */
export const LEVELS = 8;

/** Range of an overlay: values from `low` over `middle` to `high`; null where nothing was recorded. */
export interface Scale {
  readonly low: number;
  readonly high: number;
  /** Values below it have the other color; null for a scale of one color. */
  readonly middle: number | null;
  readonly about: string;
}

/** Numbers of one token. */
export interface TokenNumbers {
  readonly advantage: number | null;
  readonly logprob: number | null;
  readonly entropy: number | null;
  /** Probability by the trainer, over that by the sampler. */
  readonly ratio: number | null;
  readonly isTrained: boolean | null;
  readonly isSampled: boolean;
}

/** `fallback`: the attempt's own advantage, for runs that recorded none by token. */
export function numbersOf(turn: TurnTokens, index: number, fallback: number | null): TokenNumbers {
  const at = index - turn.sampledFrom;
  if (at < 0) return PROMPT;
  const logprob = turn.logprobs[at] ?? null;
  const trainer = valueOf(turn.trainerLogprobs, at);
  return {
    advantage: turn.advantages === null ? fallback : valueOf(turn.advantages, at),
    logprob,
    entropy: valueOf(turn.entropies, at),
    ratio: trainer === null || logprob === null ? null : Math.exp(trainer - logprob),
    isTrained: valueOf(turn.mask, at),
    isSampled: true,
  };
}

function valueOf<T>(column: readonly (T | null)[] | null, at: number): T | null {
  return column?.[at] ?? null;
}

const PROMPT: TokenNumbers = {
  advantage: null,
  logprob: null,
  entropy: null,
  ratio: null,
  isTrained: null,
  isSampled: false,
};

/** Least surprising token that has the full color, in nats: a probability below 0.7 %. */
const FULL_SURPRISE = 5;

/** Null: no token has such a number. */
export function scaleOf(overlay: Overlay, turns: readonly TurnTokens[], fallback: number | null): Scale | null {
  if (overlay === 'none' || overlay === 'mask') return null;
  const values = turns.flatMap((turn) => turn.logprobs.map((_, at) => valueAt(overlay, turn, at, fallback)));
  const sizes = values.filter((value) => value !== null).map((value) => sizeOf(overlay, value));
  if (sizes.length === 0) return null;
  return SCALES[overlay](sizes.reduce((most, size) => Math.max(most, size), 0));
}

/** Distance from the middle. */
function sizeOf(overlay: Overlay, value: number): number {
  return Math.abs(overlay === 'ratio' ? Math.log(value) : value);
}

/** `most`: the largest distance from the middle. */
const SCALES: Readonly<Record<Exclude<Overlay, 'none' | 'mask'>, (most: number) => Scale>> = {
  logprob: () => ({ low: -FULL_SURPRISE, high: 0, middle: null, about: 'the stronger, the less probable it was' }),
  entropy: (most) => ({
    low: 0,
    high: most || 1,
    middle: null,
    about: 'the stronger, the more open the choice was (nats)',
  }),
  ratio: (most) => {
    const span = Math.exp(Math.max(most, 0.01));
    return { low: 1 / span, high: span, middle: 1, about: 'probability by the trainer over that by the sampler' };
  },
  advantage: (most) => ({
    low: -(most || 1),
    high: most || 1,
    middle: 0,
    about: 'reinforced above 0, discouraged below',
  }),
};

function valueAt(overlay: Overlay, turn: TurnTokens, at: number, fallback: number | null): number | null {
  const numbers = numbersOf(turn, turn.sampledFrom + at, fallback);
  return overlay === 'mask' || overlay === 'none' ? null : numbers[overlay];
}

/** Class of a token and, on a scale, how deep its color is: up to `LEVELS`. */
type Shade = readonly [name: 'up' | 'down' | 'trained' | 'untrained' | '', level?: number];

export function shadeOf(overlay: Overlay, numbers: TokenNumbers, scale: Scale | null): Shade {
  if (!numbers.isSampled || overlay === 'none') return [''];
  if (overlay === 'mask') return [numbers.isTrained === null ? '' : numbers.isTrained ? 'trained' : 'untrained'];
  const value = numbers[overlay];
  const share = value === null || scale === null ? 0 : shareOf(overlay, value, scale);
  const level = Math.min(LEVELS, Math.round(Math.abs(share) * LEVELS));
  return level === 0 ? [''] : [share > 0 ? 'up' : 'down', level];
}

function shareOf(overlay: Overlay, value: number, scale: Scale): number {
  if (overlay === 'ratio') return Math.log(value) / Math.log(scale.high);
  if (overlay === 'logprob') return value / scale.low;
  return value / scale.high;
}

/** Sentence on a token, for a line under the tokens and for screen readers. */
export function describeNumbers({ advantage, logprob, entropy, ratio, isTrained, isSampled }: TokenNumbers): string[] {
  if (!isSampled) return ['prompt'];
  const facts = [
    logprob === null
      ? null
      : `log-probability ${formatNumber(logprob)} (probability ${formatNumber(Math.exp(logprob))})`,
    advantage === null ? null : `advantage ${formatNumber(advantage)}`,
    entropy === null ? null : `entropy ${formatNumber(entropy)}`,
    ratio === null ? null : `ratio ${formatNumber(ratio, 4)}`,
    isTrained === null ? null : isTrained ? 'trained' : 'not trained',
  ];
  return facts.filter((fact) => fact !== null);
}
