/** Serves a shop's customers by a policy: looks the order up, then acts, refuses, or calls a human. Each answer is a key. */
import { defineAgent } from 'temper-rl';
import { ACTS, drawCall, examScenarios, scenarios, type Scenario } from './calls.ts';

/** Shown before the first look. */
const NOTHING = '?';
/** A key is one token; what is longer ends all the same, and is illegal. */
const MAX_TOKENS = 4;
/** Something to learn from before the first right answer. */
const LOOKED = 0.2;

export default defineAgent<Scenario>({
  name: 'customer-service',
  scenarios,
  evalScenarios: examScenarios,

  async rollout({ scenario, openai, model }) {
    const { wish, shown, right } = drawCall(scenario);
    const acts: string[] = [];
    // Once the agent has done or said something, the customer hangs up.
    while (!acts.some((act) => act !== 'look')) {
      // A turn is one message, which says all there is to know: the wish, what was looked up, and the keys that are left.
      const keys = ACTS.map((act, index) => (acts.includes(act) ? '' : String(index + 1))).join('');
      const content = `${wish} ${acts.length === 0 ? NOTHING : shown} ${keys}`;
      const messages = [{ role: 'user' as const, content }];
      const completion = await openai.chat.completions.create({ model, messages, max_tokens: MAX_TOKENS });
      const key = completion.choices[0]?.message.content ?? '';
      acts.push(key.length === 1 && keys.includes(key) ? ACTS[Number(key) - 1]! : 'illegal');
    }
    const [looked, illegal] = [acts[0] === 'look', acts.at(-1) === 'illegal'];
    // An agent that acts blindly breaks the policy, even if it is lucky.
    const resolved = looked && acts.at(-1) === right;
    const partial = looked && !illegal ? LOOKED : 0;
    return { reward: resolved ? 1 : partial, metrics: { resolved, looked, illegal, turns: acts.length } };
  },
});
