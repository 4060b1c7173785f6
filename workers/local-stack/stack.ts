/** The children of one local stack: started at the first attachment, joined by later ones, ended together. */
import { TemperError } from '../../core/failures.ts';
import type { ProjectFolders } from '../folders.ts';
import { openChildLog } from './child-log.ts';
import type { ChildLog } from './child-log.ts';
import type { ChildSpec } from './child-process.ts';
import { gpuWorker, temporalServer, typescriptWorker, workerName } from './children.ts';
import type { ChildContext } from './children.ts';
import { engineKeyOf } from './engine-key.ts';
import type { ChildStatus, StackEvent } from './events.ts';
import { markProcess } from './processes.ts';
import type { ProcessMark } from './processes.ts';
import type { AgentRequest, ClientMessage, StackDescription, StackSpec } from './protocol.ts';
import { writeAtomically } from './stack-file.ts';
import type { StackPorts } from './stack-file.ts';
import { supervise } from './supervisor.ts';
import type { Supervised } from './supervisor.ts';

interface Child {
  readonly supervised: Supervised;
  readonly log: ChildLog;
  /** Whose worker it is: started anew when the code is another. */
  readonly agent: AgentRequest | null;
}

export interface Stack {
  readonly description: StackDescription;
  attach(request: Extract<ClientMessage, { type: 'attach' }>): Promise<void>;
  statuses(): ChildStatus[];
  marks(): ProcessMark[];
  end(): Promise<void>;
}

export function createStack(
  spec: StackSpec,
  folders: ProjectFolders,
  ports: StackPorts,
  onEvent: (event: StackEvent) => void,
): Stack {
  const description = describeStack(spec, ports);
  const context: ChildContext = { spec, folders, ports, stack: description, engineKey: engineKeyOf(spec, folders) };
  const children = new Map<string, Child>();
  let models: Record<string, string> | null = null;

  const start = (child: ChildSpec, agent: AgentRequest | null = null) => {
    const log = openChildLog(folders.logs, child.name);
    children.set(child.name, { supervised: supervise(child, log, onEvent), log, agent });
  };
  const stop = async (name: string) => {
    const child = children.get(name);
    await child?.supervised.stop();
    child?.log.close();
    children.delete(name);
  };
  const startShared = () => {
    if (children.size > 0) return;
    if (spec.temporalCommand) start(temporalServer(context));
    if (spec.gpuWorkerCommand) start(gpuWorker(context));
  };
  const startWorker = (agent: AgentRequest | null) => {
    const file = agent?.file ?? null;
    const name = workerName(file, (wanted) => children.has(wanted));
    start(typescriptWorker(context, name, file), agent);
  };
  const startAgent = async (agent: AgentRequest) => {
    const known = [...children].find(([, child]) => child.agent?.file === agent.file);
    if (known !== undefined) {
      const [name, child] = known;
      if (child.agent?.codeSha256 === agent.codeSha256) return;
      await stop(name);
    }
    startWorker(agent);
  };

  return {
    description,
    async attach({ agents, models: wanted }) {
      models = mergeModels(models, wanted);
      writeAtomically(folders.models, `${JSON.stringify(models, null, 2)}\n`);
      startShared();
      for (const agent of agents) await startAgent(agent);
      const hasWorker = [...children.keys()].some((name) => name.startsWith('worker'));
      if (!hasWorker) startWorker(null);
    },
    statuses: () => [...children.values()].map((child) => child.supervised.status()),
    marks: () =>
      [...children.values()].flatMap(({ supervised }) =>
        Object.entries(supervised.pids()).flatMap(([name, pid]) => (pid && markProcess(name, pid)) || []),
      ),
    async end() {
      // Workers first: they finish what they can while the server still listens.
      const workers = [...children.keys()].filter((name) => name !== 'temporal-server');
      await Promise.all(workers.map(stop));
      await stop('temporal-server');
    },
  };
}

function describeStack(spec: StackSpec, ports: StackPorts): StackDescription {
  return {
    pid: process.pid,
    temporalAddress: spec.temporal?.address ?? `127.0.0.1:${ports.temporal}`,
    namespace: spec.temporal?.namespace ?? 'default',
    uiUrl: spec.temporal ? null : `http://127.0.0.1:${ports.ui}`,
    engineUrl: spec.engineUrl ?? `http://127.0.0.1:${ports.engine}`,
    storeUri: spec.storeUri,
    ownsServer: spec.temporal === null,
  };
}

/** One name means one folder for as long as the stack lives: runs in flight rely on it. */
function mergeModels(
  known: Record<string, string> | null,
  wanted: Readonly<Record<string, string>>,
): Record<string, string> {
  for (const [name, folder] of Object.entries(wanted)) {
    const other = known?.[name];
    if (other === undefined || other === folder) continue;
    throw new TemperError(
      'BadConfig',
      `the model ${name} must mean one folder while the local stack runs, it means ${other}, got ${folder}; use another name or end the other command first`,
    );
  }
  return { ...known, ...wanted };
}
