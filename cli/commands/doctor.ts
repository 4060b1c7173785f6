import type { Command } from '../command.ts';
import { EXIT } from '../errors.ts';
export const doctor: Command = {
  name: 'doctor',
  summary: 'x',
  usage: 'doctor',
  positionals: [],
  options: {},
  run: async () => EXIT.ok,
};
