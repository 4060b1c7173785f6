/**
 * Plays one attempt of the workflow `support` with a journal on disk: `workflow-player.ts STORE ENGINE ADDRESS QUEUE RUN`.
 * It kills itself once it has an answer that its workflow does not have yet; see workflow-agents.test.ts.
 */
import { FileStore } from '../../store/bytes/file-store.ts';
import { workflowAgent } from '../../workers/workflow-agents/workflow-agent.ts';
import { FAKE_ENGINE_KEY } from '../fake-engine.ts';
import { playOne, type TestRollout } from '../play/play.ts';

const [store = '', url = '', address = '', taskQueue = '', run = ''] = process.argv.slice(2);
const { rollout } = workflowAgent({
  name: 'support',
  scenarios: [],
  workflow: 'support',
  taskQueue,
  address,
  interact: ({ workflow }) => workflow.signal('approve', 'ada'),
  reward: () => 1,
});
await playOne({ url, key: FAKE_ENGINE_KEY }, rollout as TestRollout, {
  segments: await new FileStore(store).openJournal('journal'),
  run: { address: { storeId: 'store', run, play: '0.4.0' }, isPlayedAgain: () => true },
  rollout: { attemptTimeoutMs: 600_000, callTimeoutMs: 5000 },
  onAnswer: () => process.kill(process.pid, 'SIGKILL'),
});
