/** Learns from a judge: attempts at the same task are compared by a large model, and no reward function is needed. */
import { defineAgent, ruler } from 'temper-rl';

const topics = [
  'the sea',
  'a train',
  'winter',
  'a clock',
  'the moon',
  'a garden',
  'rain',
  'a bridge',
  'bread',
  'a cat',
];

export default defineAgent({
  name: 'poet',
  scenarios: topics.slice(2).map((topic) => ({ id: topic, topic })),
  evalScenarios: topics.slice(0, 2).map((topic) => ({ id: topic, topic })),
  reward: ruler({
    // provider/model, with the provider's key in the environment (OPENAI_API_KEY).
    judge: 'openai/gpt-5-mini',
    rubric: 'A good poem has two lines that rhyme, is about the topic, and surprises.',
    // The judge's score, from 0 to 1, plus what the rollout returns.
    weights: { ruler: 1, agent: 1 },
    usdPerMillionInput: 0.25,
    usdPerMillionOutput: 2,
  }),

  // The judge reads the conversation. Metrics are for you.
  async rollout({ scenario, openai, model }) {
    const completion = await openai.chat.completions.create({
      model,
      messages: [{ role: 'user', content: `Write a poem of two lines about ${scenario.topic}.` }],
      max_tokens: 60,
    });
    const poem = completion.choices[0]?.message.content ?? '';
    return { reward: poem === '' ? -1 : 0, metrics: { lines: poem.split('\n').length } };
  },
});
