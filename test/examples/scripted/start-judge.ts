/**
 * The scripted judge in a terminal; prints one line for each answer.
 * Run it with `node --import temper-rl/typescript test/examples/scripted/start-judge.ts`.
 */
import { parseArgs } from 'node:util';
import { startJudge } from './judge-server.ts';

const { values } = parseArgs({ options: { port: { type: 'string', default: '4711' } } });

const { url } = await startJudge({
  port: Number(values.port),
  onAnswer: (opinions) => {
    const scores = opinions.map(({ score }) => score);
    const range = `${Math.min(...scores).toFixed(2)} to ${Math.max(...scores).toFixed(2)}`;
    console.log(`judged ${scores.length} different attempts: ${range}`);
  },
});
console.log(`the judge answers at ${url}; Ctrl-C ends it`);
