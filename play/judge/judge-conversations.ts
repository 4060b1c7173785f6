/**
 * Judges conversations against each other: equal ones once, what was judged before not at all. Knows nothing of
 * Temporal or of runs: the judge activity and the imperative API both come through here.
 */
import type { JudgeSpending } from '../../core/contract/contract.ts';
import { badConfig, TemperError } from '../../core/contract/failures.ts';
import { spendingOf } from '../../core/rules/judge-spending.ts';
import type { Answers, JudgeAnswer, Score, Verdict, Verdicts } from '../../store/records/judging/verdicts.ts';
import { withComplaint, parseJsonAnswer } from '../hosted/ask-structured.ts';
import type { Conversation } from '../../store/records/judging/conversation.ts';
import { askJudge, PromptTooLong, type Judge, type JudgePatience } from './ask-judge.ts';
import { planQuestion, type PlannedQuestion } from '../../store/records/judging/prompt.ts';
import { LEAST_MAX_CHARS, type Ruler } from './ruler.ts';

export interface JudgingOptions {
  readonly judge: Judge;
  /** Identity of the model that answers: a checkpoint's adapter hash. */
  readonly model: string;
  readonly verdicts: Verdicts;
  readonly answers: Answers;
  readonly patience: JudgePatience;
}

export interface Judgement {
  /** Key of the verdict in the store. */
  readonly key: string;
  /** Scores with the conversations' ids, in their order. */
  readonly scores: readonly ({ readonly id: string } & Score)[];
  readonly spent: JudgeSpending;
}

/** Each round asks once more where the first answer is unusable. */
const ASKS_PER_ROUND = 2;
const FIRST_PAUSE_MS = 10_000;
const LONGEST_PAUSE_MS = 3_600_000;

export async function judgeConversations(
  conversations: readonly Conversation[],
  options: JudgingOptions,
): Promise<Judgement> {
  checkIds(conversations);
  const { rubric, maxCharsPerAttempt, request } = options.judge.ruler;
  const question = planQuestion({ conversations, model: options.model, rubric, maxCharsPerAttempt, request });
  const known = await options.verdicts.read(question.key);
  const answers = await options.answers.read(question.key);
  if (known !== null) await keepQuestion(question, maxCharsPerAttempt, options);
  const verdict = known ?? (await findVerdict(question, answers, options));
  return { key: question.key, scores: scoresOf(conversations, question, verdict), spent: spendingOf(answers) };
}

/** From what was answered before, or from what is answered now; `answers` grows by what was paid for. */
async function findVerdict(
  question: PlannedQuestion,
  answers: JudgeAnswer[],
  options: JudgingOptions,
): Promise<Verdict> {
  let complaint: string | null = null;
  for (const answer of answers) {
    const read = readAnswer(question, answer);
    if (!isUnusable(read)) return keep(question, read, options);
    complaint = read.complaint;
  }
  for (let ask = 0; ask < ASKS_PER_ROUND; ask++) {
    const { answer, maxChars } = await askShortened(question, complaint, options);
    await keepQuestion(question, maxChars, options);
    const because = complaint === null ? {} : { complaint };
    answers.push(await options.answers.write(question.key, answers.length, { ...answer, ...because }));
    const read = readAnswer(question, answers.at(-1)!);
    if (!isUnusable(read)) return keep(question, read, options);
    complaint = read.complaint;
  }
  throw unusable(options.judge.ruler, answers.length, complaint ?? '');
}

/** Halves every attempt, again and again, for a judge that cannot read so much. */
async function askShortened(
  question: PlannedQuestion,
  complaint: string | null,
  options: JudgingOptions,
): Promise<{ answer: JudgeAnswer; maxChars: number }> {
  const { judge, patience } = options;
  for (let maxChars = judge.ruler.maxCharsPerAttempt; ; maxChars = Math.floor(maxChars / 2)) {
    try {
      const answer = await askJudge(judge, withComplaint(question.messages(maxChars), complaint), patience);
      return { answer, maxChars };
    } catch (error) {
      if (!(error instanceof PromptTooLong)) throw error;
      if (maxChars < 2 * LEAST_MAX_CHARS) throw unreadable(judge.ruler, question, maxChars, error);
    }
  }
}

/** Keeps everything of the prompt that the attempts do not tell, so that people can read it later. */
function keepQuestion(
  { key }: PlannedQuestion,
  maxChars: number,
  { judge: { ruler }, model, answers }: JudgingOptions,
): Promise<void> {
  const { judge, rubric, maxCharsPerAttempt, request } = ruler;
  return answers.keepQuestion(key, { judge: judge.name, model, rubric, maxCharsPerAttempt, request, maxChars });
}

function unreadable({ judge }: Ruler, { attempts }: PlannedQuestion, maxChars: number, cause: Error): TemperError {
  const rule = `the judge ${judge.name} cannot read ${attempts.length} attempts at once, not even with ${maxChars} characters of each`;
  const remedy = 'lower --group-size, shorten the rubric, or choose a judge that reads more';
  return badConfig(`${rule} (${cause.message}); ${remedy}`, { cause });
}

function readAnswer(
  { attempts }: PlannedQuestion,
  { text, finishReason }: JudgeAnswer,
): ReadonlyMap<string, Score> | Unusable {
  if (finishReason === 'length') return { complaint: 'it was cut off at its token limit' };
  return parseVerdict(
    text,
    attempts.map(({ askedAs }) => askedAs),
  );
}

function keep(
  { key, attempts }: PlannedQuestion,
  scores: ReadonlyMap<string, Score>,
  { judge, verdicts }: JudgingOptions,
): Promise<Verdict> {
  const byHash = attempts.map(({ sha256, askedAs }) => [sha256, scores.get(askedAs)!] as const);
  return verdicts.write(key, { schema: 1, judge: judge.ruler.judge.name, scores: Object.fromEntries(byHash) });
}

function scoresOf(
  conversations: readonly Conversation[],
  { key, attempts }: PlannedQuestion,
  { scores }: Verdict,
): Judgement['scores'] {
  const byId = new Map(attempts.flatMap(({ ids, sha256 }) => ids.map((id) => [id, scores[sha256]] as const)));
  return conversations.map(({ id }) => {
    const score = byId.get(id);
    if (score !== undefined) return { id, ...score };
    throw new TemperError(
      'StoreCorrupt',
      `the verdict ${key} has no score for an attempt; delete it, and the group is judged again`,
    );
  });
}

function checkIds(conversations: readonly Conversation[]): void {
  const ids = conversations.map(({ id }) => id);
  const twice = ids.find((id, index) => ids.indexOf(id) !== index);
  if (twice !== undefined)
    throw badConfig(`conversations that are judged together must have unique ids, got ${twice} twice`);
  if (ids.length === 0) throw badConfig('a judge compares at least one conversation, got none; leave the group out');
}

/** Longer each time: a judge that talks nonsense must not cost a fortune. */
export function pauseAfterMs(rounds: number): number {
  return Math.min(FIRST_PAUSE_MS * 2 ** (rounds - 1), LONGEST_PAUSE_MS);
}

function unusable({ judge }: Ruler, answered: number, complaint: string): TemperError {
  const retryAfterMs = pauseAfterMs(Math.ceil(answered / ASKS_PER_ROUND));
  return new TemperError(
    'JudgeFailed',
    `the judge ${judge.name} gave ${answered} unusable answers (the last: ${complaint}); Temper retries later, or you can choose another judge`,
    { retryAfterMs },
  );
}

/** The text for asking a judge again; it quotes nothing of its answer. */
interface Unusable {
  readonly complaint: string;
}

const MAX_EXPLANATION = 2000;
/**
 * A judge's answer, read strictly: it is JSON as a whole, and names each attempt once, by the exact name that only the
 * prompt's delimiters carry. What an attempt shows of scores can therefore never be taken for the judge's.
 */
export function parseVerdict(text: string, names: readonly string[]): ReadonlyMap<string, Score> | Unusable {
  const entries = parseEntries(text);
  if (entries === null) return { complaint: 'it was not JSON of the form {"scores":[…]} and nothing else' };
  const scores = new Map<string, Score>();
  for (const entry of entries) {
    const { id, score, explanation } = (entry ?? {}) as { id?: unknown; score?: unknown; explanation?: unknown };
    if (typeof id !== 'string' || !names.includes(id))
      return { complaint: `an id must be exactly one of ${names.join(', ')}` };
    if (scores.has(id)) return { complaint: `${id} must be scored once, it was scored twice` };
    if (typeof score !== 'number' || !(score >= 0 && score <= 1))
      return { complaint: `the score of ${id} must be a number from 0 to 1` };
    if (typeof explanation !== 'string') return { complaint: `the explanation of ${id} must be text` };
    scores.set(id, { score, explanation: explanation.slice(0, MAX_EXPLANATION) });
  }
  const missing = names.filter((name) => !scores.has(name));
  return missing.length === 0 ? scores : { complaint: `it must score ${missing.join(', ')} as well` };
}

function isUnusable(result: ReadonlyMap<string, Score> | Unusable): result is Unusable {
  return 'complaint' in result;
}

function parseEntries(text: string): unknown[] | null {
  const body = parseJsonAnswer(text) as { scores?: unknown } | null | undefined;
  return Array.isArray(body?.scores) ? (body.scores as unknown[]) : null;
}
