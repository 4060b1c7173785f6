/** A hosted model for `temper init --task`: it writes sums, an agent that adds, samples, and judges attempts by the words in them. */
import { readPrompt, type AskedMessage } from '../../play/judge/scripted-judge.ts';
import { startAuthor, type AuthorRequest, type ScriptedAuthor } from '../scenarios/scripted-author.ts';

export interface WriterScript {
  readonly systemPrompt?: string;
  readonly rubric?: string;
  /** Rubric under which the judge ranks the samples; by default any. */
  readonly ranksUnder?: (rubric: string) => boolean;
}

const SAMPLES = { good: 'a good sum', mediocre: 'a fair sum', bad: 'a poor sum' };
export const SHARPER = 'The sharper rubric: the right sum is better than a wrong one.';

export function startWriter(script: WriterScript = {}): Promise<ScriptedAuthor> {
  return startAuthor({
    propose: ({ count }) =>
      Array.from({ length: count }, (_, index) => [`How much is ${index} and ${index * 3 + 1}?`, 1 + (index % 5)]),
    play: (request) => ({ content: answerTo(request, script) }),
  });
}

function answerTo(request: AuthorRequest, script: WriterScript): string {
  const { systemPrompt = 'Answer with the sum alone.', rubric = 'The right sum is better.' } = script;
  const kind = request.response_format?.json_schema.name;
  if (kind === 'agent') return JSON.stringify({ systemPrompt, rubric });
  if (kind === 'samples') return JSON.stringify(SAMPLES);
  if (kind === 'rubric') return JSON.stringify({ rubric: SHARPER });
  return isJudging(request) ? judge(request.messages, script) : 'the sum';
}

function isJudging({ messages: [first] }: AuthorRequest): boolean {
  return first?.content.startsWith('You compare attempts') ?? false;
}

function judge(messages: readonly AskedMessage[], { ranksUnder = () => true }: WriterScript): string {
  const { rules, attempts } = readPrompt(messages);
  const isRanked = ranksUnder(rules);
  const scores = [...attempts].map(([id, lines]) => {
    const score = scoreOf(lines.join('\n'));
    return { id, explanation: 'by its words', score: isRanked ? score : 1 - score };
  });
  return JSON.stringify({ scores });
}

/** The samples by their quality; any other attempt by its length, the shorter the better. */
function scoreOf(text: string): number {
  if (text.includes('good')) return 0.9;
  if (text.includes('fair')) return 0.5;
  if (text.includes('poor')) return 0.1;
  return Math.max(0, 1 - text.length / 1000);
}
