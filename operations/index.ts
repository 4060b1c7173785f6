/** All operations, by name. */
import * as steer from './steer.ts';

export const OPERATIONS = { ...steer };
