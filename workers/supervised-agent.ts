/**
 * Agent of workers of runs on a file of chats: such a run has examples instead of an agent, and its worker prepares and records
 * it. It imports nothing, so that its hash changes with this file alone.
 */
export default {
  [Symbol.for('temper.agent')]: true,
  name: 'temper-sft',
  scenarios: [],
  rollout: () => Promise.reject(new Error('a run of examples plays no agent')),
};
