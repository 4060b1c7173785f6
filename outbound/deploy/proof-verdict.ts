/** The verdict on a deployment, from measurements of its answers. */
import { z } from 'zod';

import type { DeployedAnswer } from './ask-deployed.ts';
import type { Proof } from './targets/target.ts';

const Measure = z.looseObject({
  /** `checkpoint`, `base`, `scale` (of its factor) or `missing` (of its module). */
  kind: z.string(),
  of: z.union([z.string(), z.number()]).nullable(),
  /** Mean difference of log-probabilities, in nats; null: the deployment gave none. */
  distance: z.number().nullable(),
  /** How much less probable greedy tokens are than the likeliest, in nats on average. */
  regret: z.number(),
  /** Number of standard errors by which it explains the answers better than the checkpoint. */
  lead: z.number(),
});
type Measure = z.infer<typeof Measure>;

/** The output of the program `measure`. */
export const MeasuredAnswers = z.looseObject({
  tokens: z.int(),
  /** Tokens that came with a log-probability. */
  scored: z.int(),
  sameTexts: z.int(),
  /** Share of the adapter's change that was found; null if that cannot be told. */
  share: z.number().nullable(),
  /** The checkpoint first, then its base model. */
  measures: z.array(Measure).min(2),
});
export type MeasuredAnswers = z.infer<typeof MeasuredAnswers>;

/**
 * Bounds of the mean distance from the policy that was deployed, in nats: beyond them it is none of those that Temper can
 * make of the adapter. Measured, with room: vLLM in float32 1e-6, llama.cpp with weights in float32 0.0014 and in 8 bits
 * 0.12 (docs/decisions.md).
 */
const MOST_DISTANCE = 0.4;
/** The same where nothing of the adapter is seen in the answers, so that only their nearness speaks for the base model. */
const MOST_UNSEEN_DISTANCE = 0.2;
/** The same of greedy text alone, whose tokens differ only where two are nearly as likely. */
const MOST_REGRET = 0.1;
/** Standard errors that an explanation must be ahead of another one: less is chance. */
const LEAST_LEAD = 4;
/** Or what it may leave of the other one's error: of a few tokens, standard errors say little. */
const MOST_LEFT = 0.25;
/** Smaller errors are rounding, whatever explains them better. */
const LEAST_ERROR = 1e-3;

export function judgeProof(measured: MeasuredAnswers, answers: readonly DeployedAnswer[]): Proof {
  const { measures, tokens, scored, sameTexts, share } = measured;
  const [checkpoint, base] = measures as [Measure, Measure];
  const nearest = measures.reduce((best, each) => (errorOf(each) < errorOf(best) ? each : best));
  const found = isBetter(nearest, checkpoint, nearest.lead) ? nearest : checkpoint;
  const otherPrompts = answers.filter(hasOtherPrompt).length;
  const isAdapterSeen = found !== checkpoint || isBetter(checkpoint, base, -base.lead);
  const verdict = isNear(found, isAdapterSeen)
    ? verdictOf(found)
    : otherPrompts > 0
      ? 'wrong-chat-template'
      : 'wrong-base-model';
  const { length: prompts } = answers;
  const facts = { prompts, tokens, scored, sameTexts, checkpoint, base, found, isAdapterSeen, otherPrompts };
  return {
    verdict,
    detail: `${explain(verdict, facts)} (${compared(facts)})`,
    prompts,
    measured: {
      tokens,
      sameTexts,
      error: errorOf(checkpoint),
      errorOfBase: errorOf(base),
      lead: nearest === checkpoint ? 0 : nearest.lead,
      ...(share === null ? {} : { share }),
    },
  };
}

/** In nats: of log-probabilities where there are some, else of greedy text. */
const errorOf = ({ distance, regret }: Measure): number => distance ?? regret;
const isNear = ({ distance, regret }: Measure, isAdapterSeen: boolean): boolean =>
  distance === null ? regret <= MOST_REGRET : distance <= (isAdapterSeen ? MOST_DISTANCE : MOST_UNSEEN_DISTANCE);

function isBetter(one: Measure, other: Measure, lead: number): boolean {
  if (errorOf(other) <= LEAST_ERROR) return false;
  return lead >= LEAST_LEAD || errorOf(one) <= MOST_LEFT * errorOf(other);
}

/** One token apart is a token that begins every text, which some servers do not count. */
function hasOtherPrompt({ promptTokens, promptTokenIds }: DeployedAnswer): boolean {
  return promptTokens !== null && Math.abs(promptTokens - promptTokenIds.length) > 1;
}

function verdictOf({ kind }: Measure): Proof['verdict'] {
  switch (kind) {
    case 'checkpoint':
      return 'matches';
    case 'base':
      return 'adapter-absent';
    case 'scale':
      return 'wrong-scale';
    default:
      return 'missing-target-module';
  }
}

interface Facts extends Pick<MeasuredAnswers, 'tokens' | 'scored' | 'sameTexts'> {
  readonly prompts: number;
  readonly checkpoint: Measure;
  readonly base: Measure;
  readonly found: Measure;
  readonly isAdapterSeen: boolean;
  readonly otherPrompts: number;
}

function explain(verdict: Proof['verdict'], { found, isAdapterSeen, prompts, otherPrompts }: Facts): string {
  switch (verdict) {
    case 'matches':
      return isAdapterSeen
        ? 'it answers as the checkpoint does'
        : 'it answers as the checkpoint does, which its base model does as well: the adapter changes too little to tell them apart';
    case 'adapter-absent':
      return 'it answers as the base model does, without the adapter';
    case 'wrong-scale':
      return `it answers as the checkpoint would with ${round(Number(found.of))} times the adapter's scale`;
    case 'missing-target-module':
      return `it answers as the checkpoint would without the adapter of ${String(found.of)}`;
    case 'wrong-chat-template':
      return `it made other prompts of ${otherPrompts} of ${prompts} conversations: their numbers of tokens differ from the recorded ones`;
    case 'wrong-base-model':
    case 'different':
    default:
      return 'it answers neither as the checkpoint, nor as its base model, nor as parts of the adapter would: another base model, or other weights';
  }
}

function compared({ prompts, tokens, scored, sameTexts, checkpoint, base }: Facts): string {
  const texts = `${sameTexts} of ${prompts} greedy answers are the checkpoint's`;
  const [own, other] = [errorOf(checkpoint), errorOf(base)].map(round);
  return scored > 0
    ? `${texts}; over ${scored} tokens its log-probabilities are ${own} nats from the checkpoint's, ${other} from the base model's`
    : `${texts}; over ${tokens} tokens its text is ${own} nats less likely than the checkpoint's own, ${other} than the base model's`;
}

const round = (value: number): string => String(Number(value.toPrecision(2)));
