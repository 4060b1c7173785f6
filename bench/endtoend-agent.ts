/** Agent of `npm run bench -- endtoend`: one answer to each prompt of its file, graded as in trl/run.py. */
import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { defineAgent } from 'temper-rl';

export interface Prompt {
  readonly id: string;
  readonly text: string;
  readonly maxTokens: number;
  /** The one right answer; null: the share of digits is the reward. */
  readonly answer: string | null;
  /** Tool results that follow an answer: one more turn each. */
  readonly results: readonly string[];
}

interface Message {
  readonly role: 'user' | 'assistant';
  readonly content: string;
}

/** Delay of an engine on a separate, slower device, or of a tool. */
const waitMs = Number(process.env['TEMPER_BENCH_WAIT_MS'] ?? 0);
const prompts = JSON.parse(readFileSync(process.env['TEMPER_BENCH_PROMPTS'] ?? '', 'utf8')) as Prompt[];

export default defineAgent<Prompt>({
  name: 'bench-endtoend',
  scenarios: prompts,

  async rollout({ scenario: { text, answer, maxTokens, results }, openai, model }) {
    const messages: Message[] = [];
    for (const said of [text, ...results]) {
      messages.push({ role: 'user', content: said });
      const completion = await openai.chat.completions.create({ model, messages, max_tokens: maxTokens });
      await wait(waitMs);
      messages.push({ role: 'assistant', content: completion.choices[0]?.message.content ?? '' });
    }
    const answers = messages.filter(({ role }) => role === 'assistant').map(({ content }) => content);
    if (answer !== null) return Number(answers[0] === answer);
    return answers.join('').replaceAll(/\D/g, '').length / (maxTokens * answers.length);
  },
});
