/** Plays programs that sleep, until it is killed; see programs.test.ts. */
import { command } from '../../sdk/index.ts';
import { startFakeEngine } from '../fake-engine.ts';
import { playAttempts } from './play.ts';

const engine = await startFakeEngine();
const rollout = command(['/bin/sh', '-c', 'setsid sleep 4001 & env -i sleep 4002']);
await playAttempts(engine, rollout, { rollout: { attemptTimeoutMs: 60_000 } });
