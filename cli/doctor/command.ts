import { defineCommand, JSON_FLAG } from '../command-line/command.ts';

export const doctorCommand = defineCommand({
  name: 'doctor',
  summary: 'check server, queues, engine, store and environments, and say what to fix',
  details: ['Exit code 1 if a check fails. Checks of things that are not running now are shown, but do not fail.'],
  arguments: {},
  flags: {
    agent: { kind: 'texts', placeholder: 'NAME', description: "also check this agent's queue; repeatable" },
    json: JSON_FLAG,
  },
});
