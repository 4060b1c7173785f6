/** A question to a hosted model whose answer is JSON of a schema, asked again where the answer is unusable. */
import { badConfig, TemperError } from '../../core/contract/failures.ts';
import { wellFormedJson, parseJson } from '../../core/text/json-text.ts';
import type { RolloutConfig } from '../../core/contract/contract.ts';
import { askHosted, type RefusedRequest } from '../connections/ask-model.ts';
import { nameMaxTokens } from '../connections/providers.ts';
import type { Completion } from '../connections/completion.ts';
import { SYSTEM_CLOCK } from '../connections/clock.ts';
import type { SendLimits } from '../connections/retry-call.ts';
import type { HostedLedger, PricedModel } from './hosted-ledger.ts';

interface AskedMessage {
  readonly role: 'system' | 'user' | 'assistant';
  readonly content: string;
}

/** The text for asking again; it quotes nothing of the answer. */
interface Complaint {
  readonly complaint: string;
}

export interface StructuredQuestion<T> {
  /** Purpose of the call: equal requests under one label are one call. */
  readonly label: string;
  readonly messages: readonly AskedMessage[];
  /** Name of the schema, by which a server can tell kinds of questions apart. */
  readonly name: string;
  /** JSON Schema in the strict form: all members required, `additionalProperties: false`. */
  readonly schema: Readonly<Record<string, unknown>>;
  /** Checks the answer, which may be anything: not every server keeps to a schema. */
  readonly parse: (value: unknown) => { readonly value: T } | Complaint;
  /** Further parameters of the request, such as `temperature`. */
  readonly request?: Readonly<Record<string, unknown>>;
}

export interface StructuredOptions {
  readonly ledger: HostedLedger;
  readonly model: PricedModel;
  readonly signal: AbortSignal;
  /** Learns of waits. */
  readonly outage: SendLimits['outage'];
  readonly times?: Pick<RolloutConfig, 'callTimeoutMs' | 'callRetryBudgetMs'>;
}

/** A model that thinks first takes minutes for a long answer. */
const TIMES = { callTimeoutMs: 600_000, callRetryBudgetMs: 300_000 };

/** Calls that are paid for before a command gives up; answers to an earlier one are read first. */
const MAX_ASKS = 3;

export async function askStructured<T>(question: StructuredQuestion<T>, options: StructuredOptions): Promise<T> {
  let complaint: string | null = null;
  let asks = 0;
  for (let number = 1; ; number++) {
    const label = number === 1 ? question.label : `${question.label} #${number}`;
    const answered: Answered = await askInForm({ ...question, label }, complaint, options);
    const read = readAnswer(question, answered.completion);
    if ('value' in read) return read.value;
    complaint = read.complaint;
    if (answered.isPaid) asks += 1;
    if (asks === MAX_ASKS) throw unusable(options.model, number, complaint);
  }
}

/** Says once for each outage what is waited for. */
export function printOutage(tell: (line: string) => void): SendLimits['outage'] {
  return {
    began: (reason) => tell(`waiting for the model: ${reason}`),
    goesOn: () => undefined,
    ended: () => undefined,
  };
}

interface Answered {
  readonly completion: Completion;
  /** Paid for by this process. */
  readonly isPaid: boolean;
}

/** Servers that know no schemas, and models that know no such parameter, refuse them: the prompt describes the form as well. */
async function askInForm<T>(
  question: StructuredQuestion<T>,
  complaint: string | null,
  options: StructuredOptions,
): Promise<Answered> {
  const { label, name, schema, request = {} } = question;
  const messages = withComplaint(question.messages, complaint);
  const form = { response_format: { type: 'json_schema', json_schema: { name, strict: true, schema } } };
  const isPlain = Object.keys(request).length === 0;
  let last: RefusedRequest | null = null;
  for (const parameters of isPlain ? [form, {}] : [{ ...request, ...form }, form, request, {}]) {
    const answer = await askOnce(label, { ...parameters, messages }, options);
    if (!('refused' in answer)) return answer;
    last = answer;
  }
  const { status, error } = last!.refused;
  const { name: model, baseUrl } = options.model.hosted;
  const said = String(error.message);
  throw badConfig(
    `the hosted model ${model} at ${baseUrl} refused with ${status}: ${said}; check the name of the model, and the address`,
  );
}

async function askOnce(
  label: string,
  request: object,
  { ledger, model, signal, outage, times = TIMES }: StructuredOptions,
): Promise<Answered | RefusedRequest> {
  const { hosted } = model;
  const asked = nameMaxTokens(hosted, request);
  const body = wellFormedJson(JSON.stringify({ model: hosted.model, ...asked }));
  const limits = { signals: [signal], checkFresh: () => signal.throwIfAborted(), outage, clock: SYSTEM_CLOCK };
  const isPaid = !ledger.knows(model, label, body);
  const answer = await askHosted({ name: hosted.name, connection: ledger.connect(model, label) }, body, {
    limits,
    times,
  });
  return 'refused' in answer ? answer : { completion: answer.completion, isPaid };
}

function readAnswer<T>({ parse }: StructuredQuestion<T>, { choices }: Completion): { readonly value: T } | Complaint {
  const [choice] = choices;
  if (choice?.finish_reason === 'length') return { complaint: 'it was cut off at its token limit' };
  const content = choice?.message.content;
  const value = parseJsonAnswer(typeof content === 'string' ? content : '');
  return value === undefined ? { complaint: 'it was not JSON and nothing else' } : parse(value);
}

function unusable({ hosted }: PricedModel, answers: number, complaint: string): TemperError {
  return new TemperError(
    'JudgeFailed',
    `the hosted model ${hosted.name} gave ${answers} unusable answers (the last: ${complaint}); run the command again, or choose another model`,
  );
}

/** Some models think aloud first, and some fence what they answer. */
const THOUGHT = /^\s*<think>[\s\S]*?<\/think>/;
const FENCE = '```';

/** Undefined where the text is anything but JSON. */
export function parseJsonAnswer(text: string): unknown {
  const said = text.replace(THOUGHT, '').trim();
  return parseJson(withoutFence(said));
}

function withoutFence(said: string): string {
  const [opening = '', ...lines] = said.endsWith(FENCE) ? said.slice(0, -FENCE.length).split('\n') : [];
  return lines.length > 0 && [FENCE, `${FENCE}json`].includes(opening.trimEnd()) ? lines.join('\n') : said;
}

interface Message {
  readonly role: 'system' | 'user';
  readonly content: string;
}

/** The complaint quotes nothing of the answer. */
export function withComplaint<M>(messages: readonly M[], complaint: string | null): readonly (M | Message)[] {
  if (complaint === null) return messages;
  const again = `An earlier answer to this could not be used: ${complaint}. Answer again, exactly in the form asked for.`;
  return [...messages, { role: 'user', content: again }];
}
