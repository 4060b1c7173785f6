/** A judge by its address: an OpenAI-compatible endpoint that the agent's file names. */
import { withoutSlash } from '../../core/names/addresses.ts';
import { anything, must, takes } from '../options/options.ts';
import { checkBaseUrl } from '../../play/connections/providers.ts';
import { resolveJudgeName, type JudgeModel } from '../../play/judge/judge-model.ts';

/** An OpenAI-compatible endpoint that has no name here. */
export interface JudgeEndpoint {
  /** Base of `/chat/completions`, with `/v1` if the endpoint has it; a bare host gets `/v1`. */
  readonly baseUrl: string;
  readonly model: string;
  /** Name in results and verdicts, before the model's name; default `endpoint`. */
  readonly name?: string;
  /** The environment variable that holds its key; without one none is sent. */
  readonly keyVariable?: string;
}

const MODEL = /^[\w.:@/~+-]{1,120}$/;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;

const checkEndpoint = takes<JudgeEndpoint>(
  'ruler.judge',
  {
    baseUrl: anything,
    model: must('the name of a model', (value) => typeof value === 'string' && MODEL.test(value), 'pass it'),
    name: must(
      'letters, digits and ._-',
      (value) => typeof value === 'string' && NAME.test(value),
      'pass another one',
    ).optional(),
    keyVariable: anything.optional(),
  },
  { owner: () => 'the judge' },
);

/** An endpoint's address is nowhere but in the process that asks: what a judge is called stands under hashes. */
export function resolveJudge(judge: string | JudgeEndpoint): JudgeModel {
  if (typeof judge === 'string') return resolveJudgeName(judge);
  const { baseUrl, model, name = 'endpoint', keyVariable = null } = checkEndpoint(judge);
  return {
    kind: 'hosted',
    name: `${name}/${model}`,
    model,
    baseUrl: withoutSlash(checkBaseUrl("the judge's baseUrl", baseUrl)),
    keyVariable,
    maxTokensName: null,
  };
}
