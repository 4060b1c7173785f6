import { command, defineAgent } from 'temper-rl';
import { scenarios, type Notebook } from './task.ts';

export default defineAgent<Notebook>({ name: 'python', scenarios, rollout: command(['python3', 'python_agent.py']) });
