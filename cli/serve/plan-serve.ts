/** Address and key of `temper serve`, checked before anything is started. */
import { SERVE_KEY_VARIABLE } from '../../core/door-keys.ts';
import { planKeyedPlace, type KeyedPlace } from '../command-line/keyed-place.ts';
import { DEFAULT_SERVE_PORT, type ServeContext } from './command.ts';

export function planServe(context: Pick<ServeContext, 'flags' | 'env' | 'output'>): KeyedPlace {
  const keyed = { command: 'temper serve', keyVariable: SERVE_KEY_VARIABLE, defaultPort: DEFAULT_SERVE_PORT };
  return planKeyedPlace(keyed, context);
}
