/** `ruler({ judge, rubric })`: the reward of an agent whose attempts a judge compares. */
import { amount, anything, must, takes, textUpTo, weights, whole } from '../options/options.ts';
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

const checkOptions = takes<RulerOptions>(
  'ruler',
  {
    judge: anything,
    rubric: textUpTo(20_000, 'say what makes an attempt better than another').optional(),
    weights: weights('ruler').optional(),
    usdPerMillionInput: amount('pass US dollars').optional(),
    usdPerMillionOutput: amount('pass US dollars').optional(),
    maxCharsPerAttempt: whole(LEAST_MAX_CHARS, 'pass more').optional(),
    request: must('an object of parameters', isParameters, 'pass for example { temperature: 0 }').optional(),
  },
  { rules: [findHalfPrice, findOurParameter] },
);

export function createRuler(options: RulerOptions): Ruler {
  checkOptions(options);
  const { judge, rubric = DEFAULT_RUBRIC, request = {}, maxCharsPerAttempt = DEFAULT_MAX_CHARS } = options;
  const { usdPerMillionInput = null, usdPerMillionOutput = null } = options;
  return Object.freeze<Ruler>({
    [RULER]: true,
    judge: resolveJudge(judge),
    rubric,
    weights: options.weights ?? { ruler: 1, agent: 0 },
    usdPerMillionInput,
    usdPerMillionOutput,
    maxCharsPerAttempt,
    request,
  });
}

function findHalfPrice({ usdPerMillionInput: input, usdPerMillionOutput: output }: RulerOptions): string | null {
  return (input === undefined) === (output === undefined)
    ? null
    : 'usdPerMillionInput and usdPerMillionOutput have an effect only together; pass both';
}

function isParameters(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function findOurParameter({ request = {} }: RulerOptions): string | null {
  const ours = Object.keys(request).find((name) => OUR_PARAMETERS.has(name));
  return ours === undefined ? null : `request must not set ${ours}, which ruler sets itself; remove it`;
}
