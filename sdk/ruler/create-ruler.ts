/** `ruler({ judge, rubric })`: the reward of an agent whose attempts a judge compares. */
import { badConfig } from '../../core/contract/failures.ts';
import { isWeight } from '../../core/rules/given-values.ts';
import { checkOptions } from '../options/check-options.ts';
import { resolveJudge, type JudgeEndpoint } from './judge-endpoint.ts';
import { DEFAULT_RUBRIC } from '../../store/records/judging/prompt.ts';
import { LEAST_MAX_CHARS, RULER, type Ruler } from '../../play/judge/ruler.ts';

export interface RulerOptions {
  /** `provider/model`, such as `openai/gpt-5-mini`; `engine/pocket` or `engine/demo@100` on the run's own engine; or an endpoint. */
  readonly judge: string | JudgeEndpoint;
  /** The criterion by which an attempt is better than another. */
  readonly rubric?: string;
  /** The reward is the weighted sum of the judge's score and the agent's own reward; by default the score alone. */
  readonly weights?: { readonly ruler: number; readonly agent: number };
  /** Prices of a million tokens in US dollars: without both, the cost of judging is unknown. */
  readonly usdPerMillionInput?: number;
  readonly usdPerMillionOutput?: number;
  /** Longer attempts are cut by the truncation rule. */
  readonly maxCharsPerAttempt?: number;
  /** Further parameters of the judge's request, such as `{ temperature: 0 }`. */
  readonly request?: Readonly<Record<string, unknown>>;
}

const OUR_PARAMETERS = new Set(['model', 'messages', 'stream', 'n']);
const DEFAULT_MAX_CHARS = 40_000;
const MAX_RUBRIC = 20_000;

export function createRuler(options: RulerOptions): Ruler {
  const complaint = findProblem(checkOptions('ruler', options));
  if (complaint !== null) throw badConfig(complaint);
  const { rubric = DEFAULT_RUBRIC, weights = { ruler: 1, agent: 0 }, request = {} } = options;
  return Object.freeze<Ruler>({
    [RULER]: true,
    judge: resolveJudge(options.judge),
    rubric,
    weights,
    usdPerMillionInput: options.usdPerMillionInput ?? null,
    usdPerMillionOutput: options.usdPerMillionOutput ?? null,
    maxCharsPerAttempt: options.maxCharsPerAttempt ?? DEFAULT_MAX_CHARS,
    request,
  });
}

/** A JavaScript caller may pass values of any type. */
function findProblem(options: object): string | null {
  const given = options as Record<string, unknown>;
  const { rubric } = given;
  if (rubric !== undefined && (typeof rubric !== 'string' || rubric.trim() === '' || rubric.length > MAX_RUBRIC))
    return `the rubric must be text of at most ${MAX_RUBRIC} characters; say what makes an attempt better than another`;
  return findWeightsProblem(given['weights']) ?? findNumbersProblem(given) ?? findRequestProblem(given);
}

function findWeightsProblem(weights: unknown): string | null {
  if (weights === undefined) return null;
  const { ruler, agent, ...rest } = (weights ?? {}) as { ruler?: unknown; agent?: unknown };
  const isGood = isWeight(ruler) && isWeight(agent) && Object.keys(rest).length === 0;
  if (!isGood)
    return 'weights must be { ruler, agent }, both numbers from 0 to 1000000; pass for example { ruler: 1, agent: 0.5 }';
  return ruler > 0
    ? null
    : 'the weight of the ruler must be more than 0, or the ruler has no effect; raise it, or remove reward';
}

function findNumbersProblem(given: Record<string, unknown>): string | null {
  const { usdPerMillionInput: input, usdPerMillionOutput: output, maxCharsPerAttempt: chars } = given;
  const amounts = { usdPerMillionInput: input, usdPerMillionOutput: output };
  const wrong = Object.entries(amounts).find(([, value]) => value !== undefined && !isAmount(value));
  if (wrong !== undefined)
    return `${wrong[0]} must be a number of at least 0, got ${JSON.stringify(wrong[1])}; pass US dollars`;
  if ((input === undefined) !== (output === undefined))
    return 'usdPerMillionInput and usdPerMillionOutput have an effect only together; pass both';
  if (chars === undefined || (Number.isSafeInteger(chars) && Number(chars) >= LEAST_MAX_CHARS)) return null;
  return `maxCharsPerAttempt must be a whole number of at least ${LEAST_MAX_CHARS}, got ${JSON.stringify(chars)}; pass more`;
}

function findRequestProblem({ request }: Record<string, unknown>): string | null {
  if (request === undefined) return null;
  if (typeof request !== 'object' || request === null || Array.isArray(request))
    return 'request must be an object of parameters; pass for example { temperature: 0 }';
  const ours = Object.keys(request).find((name) => OUR_PARAMETERS.has(name));
  return ours === undefined ? null : `request must not set ${ours}, which ruler sets itself; remove it`;
}

function isAmount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}
