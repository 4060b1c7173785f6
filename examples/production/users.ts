/** Plays games against `temper serve --record` and rates them; the keys are in the environment. */
import { parseArgs } from 'node:util';

import { games } from './game.ts';
import { playUsers } from './play-users.ts';

const { values } = parseArgs({
  options: {
    url: { type: 'string', default: 'http://127.0.0.1:8018/v1' },
    model: { type: 'string', default: 'demo' },
    games: { type: 'string', default: '500' },
    'first-seed': { type: 'string', default: '10000' },
    contrary: { type: 'boolean', default: false },
  },
});
const { TEMPER_SERVE_KEY: key = '', TEMPER_FEEDBACK_KEY: feedbackKey = '' } = process.env;
const users = games(Number(values['first-seed']), Number(values.games));
const played = await playUsers({ url: values.url, model: values.model, key, feedbackKey }, users, values);
console.log(`${played.games} games, won ${played.won.toFixed(3)}, mean reward ${played.reward.toFixed(3)}`);
