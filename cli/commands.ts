/** Every command. Its definition is loaded when it is called, and imports its work when it runs. */
import { GROUPS } from '../operations/flags.ts';
import type { Command } from './command-line/command.ts';

/** Commands that are no operations, or do more on a command line than the operation of their name; in the order of help. */
const OWN: Readonly<Record<string, () => Promise<Command>>> = {
  init: async () => (await import('./init/command.ts')).initCommand,
  try: async () => (await import('./try/command.ts')).tryCommand,
  train: async () => (await import('./train/command.ts')).trainCommand,
  schedule: async () => (await import('./schedule/command.ts')).scheduleCommand,
  scenarios: async () => (await import('./scenarios/command.ts')).scenariosCommand,
  distill: async () => (await import('./distill/command.ts')).distillCommand,
  ui: async () => (await import('./ui/command.ts')).uiCommand,
  show: async () => (await import('./show/command.ts')).showCommand,
  report: async () => (await import('./report/command.ts')).reportCommand,
  mcp: async () => (await import('./mcp/command.ts')).mcpCommand,
  eval: async () => (await import('./eval/command.ts')).evalCommand,
  export: async () => (await import('./export/command.ts')).exportCommand,
  serve: async () => (await import('./serve/command.ts')).serveCommand,
  deploy: async () => (await import('./deploy/command.ts')).deployCommand,
  review: async () => (await import('./review/command.ts')).reviewCommand,
  doctor: async () => (await import('./doctor/command.ts')).doctorCommand,
  setup: async () => (await import('./setup/command.ts')).setupCommand,
  dev: async () => (await import('./dev/command.ts')).devCommand,
  worker: async () => (await import('./worker/command.ts')).workerCommand,
  'gpu-worker': async () => (await import('./gpu-worker/command.ts')).gpuWorkerCommand,
  verify: async () => (await import('./verify/command.ts')).verifyCommand,
};

/** Null if there is none of this name. */
export async function loadCommand(name: string): Promise<Command | null> {
  if (Object.hasOwn(OWN, name)) return OWN[name]!();
  return (await operationCommands()).find((command) => command.name === name) ?? null;
}

/** All, in the order of help, for what is generated of them. */
export async function listCommands(): Promise<Command[]> {
  const own = await Promise.all(Object.values(OWN).map((load) => load()));
  const others = (await operationCommands()).filter(({ name }) => !Object.hasOwn(OWN, name));
  const placeOf = ({ group }: Command): number => GROUPS.indexOf(group ?? 'Operate');
  return [...own, ...others].toSorted((a, b) => placeOf(a) - placeOf(b));
}

async function operationCommands(): Promise<Command[]> {
  const { OPERATIONS } = await import('../operations/index.ts');
  const { toCommands } = await import('./command-line/to-command.ts');
  return toCommands(OPERATIONS);
}
