/** What `npm run bench -- endtoend` trains: one answer to each prompt of its file, as trl/run.py grades it. */
import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { defineAgent } from 'temper-rl';

export interface Prompt {
  readonly id: string;
  readonly text: string;
  readonly maxTokens: number;
  /** The one right answer; null: the share of digits is the reward. */
  readonly answer: string | null;
}

/** As an engine on a slower device of its own would take, or a tool. */
const waitMs = Number(process.env['TEMPER_BENCH_WAIT_MS'] ?? 0);
const prompts = JSON.parse(readFileSync(process.env['TEMPER_BENCH_PROMPTS'] ?? '', 'utf8')) as Prompt[];

export default defineAgent<Prompt>({
  name: 'bench-endtoend',
  scenarios: prompts,

  async rollout({ scenario: { text, answer, maxTokens }, openai, model }) {
    const messages = [{ role: 'user' as const, content: text }];
    const completion = await openai.chat.completions.create({ model, messages, max_tokens: maxTokens });
    await wait(waitMs);
    const content = completion.choices[0]?.message.content ?? '';
    return answer === null ? content.replaceAll(/\D/g, '').length / maxTokens : Number(content === answer);
  },
});
