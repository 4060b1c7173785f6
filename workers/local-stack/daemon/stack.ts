/** The children of one local stack: started at the first attachment, joined by later ones, ended together. */
import { isIPv6 } from 'node:net';
import { badConfig } from '../../../core/contract/failures.ts';
import type { ProjectFolders } from '../../project/folders.ts';
import { openChildLog, type ChildLog } from '../../process/child-log.ts';
import type { ChildSpec } from '../../process/child-process.ts';
import {
  gpuWorker,
  TEMPORAL_SERVER,
  temporalServer,
  typescriptWorker,
  workerName,
  type ChildContext,
} from '../children/children.ts';
import { engineKeyOf, localKey } from './engine-key.ts';
import type { ChildStatus, StackEvent } from '../../events.ts';
import { readModels, type Models } from '../../base-models/known-models.ts';
import { markProcess, type ProcessMark } from '../../process/processes.ts';
import type { AgentRequest, ClientMessage, StackDescription, StackSpec } from '../protocol/protocol.ts';
import type { StackPorts } from '../protocol/stack-file.ts';
import { writeAtomically } from '../../project/own-file.ts';
import { supervise, type Supervised } from '../../process/supervisor.ts';
import { version } from '../../version.ts';
import { serveUi, uiUrl } from '../children/ui.ts';
import { findPrivateAddress } from '../../process/private-address.ts';

interface Child {
  readonly supervised: Supervised;
  readonly log: ChildLog;
  /** Whose worker it is: started anew when the code is another. */
  readonly agent: AgentRequest | null;
}

export interface Stack {
  readonly description: StackDescription;
  attach(request: Extract<ClientMessage, { type: 'attach' }>): Promise<void>;
  /** Ends the workers of other agents, which no client needs any more. */
  keepAgents(files: readonly string[]): Promise<void>;
  statuses(): ChildStatus[];
  marks(): ProcessMark[];
  end(): Promise<void>;
}

export async function createStack(
  spec: StackSpec,
  folders: ProjectFolders,
  ports: StackPorts,
  onEvent: (event: StackEvent) => void,
): Promise<Stack> {
  const uiKey = spec.temporal ? null : localKey(folders.uiKey);
  const description = describeStack(spec, ports, uiKey);
  const engineKey = engineKeyOf(spec.engine, folders);
  const ui = uiKey === null ? null : await findPrivateAddress();
  const context: ChildContext = { spec, folders, ports, stack: description, engineKey, ui };
  const uiServer = uiKey === null ? null : await serveUi({ port: ports.ui, key: uiKey, temporal: ui });
  const children = new Children(context, onEvent);
  // Models of earlier commands stay: runs that continue or are verified need them.
  const registered = readModels(folders.models);
  let models: Models | null = null;

  return {
    description,
    async attach({ agents, models: wanted }) {
      models = mergeModels(models, wanted);
      writeAtomically(folders.models, `${JSON.stringify({ ...registered, ...models }, null, 2)}\n`);
      children.startShared();
      for (const agent of agents) await children.startAgent(agent);
      children.startWorkflows();
    },
    keepAgents: (files) => children.keepAgents(files),
    statuses: () => children.supervised().map((child) => child.status()),
    marks: () =>
      children
        .supervised()
        .flatMap((child) =>
          Object.entries(child.pids()).flatMap(([name, pid]) => (pid && markProcess(name, pid)) || []),
        ),
    async end() {
      uiServer?.close();
      return children.end();
    },
  };
}

class Children {
  readonly #context: ChildContext;
  readonly #onEvent: (event: StackEvent) => void;
  readonly #byName = new Map<string, Child>();
  /** Numbers of the workers: each serves its metrics at a port of its own. */
  readonly #places = new Map<number, string>();
  #isEnding = false;

  constructor(context: ChildContext, onEvent: (event: StackEvent) => void) {
    this.#context = context;
    this.#onEvent = onEvent;
  }

  names(): string[] {
    return [...this.#byName.keys()];
  }

  supervised(): Supervised[] {
    return [...this.#byName.values()].map(({ supervised }) => supervised);
  }

  /** Server and GPU worker: they are the first. */
  startShared(): void {
    const { spec } = this.#context;
    if (this.#byName.size > 0) return;
    if (spec.temporalCommand) this.#start(temporalServer(this.#context));
    if (spec.gpuWorkerCommand) this.#start(gpuWorker(this.#context));
  }

  async startAgent(agent: AgentRequest): Promise<void> {
    for (;;) {
      const known = [...this.#byName].find(([, child]) => child.agent?.file === agent.file);
      if (known === undefined) break;
      const [name, child] = known;
      if (child.agent?.codeSha256 === agent.codeSha256 && child.supervised.status().state !== 'stopping') return;
      await this.stop(name);
    }
    this.startWorker(agent);
  }

  /** Some worker must take workflow tasks. */
  startWorkflows(): void {
    if (!this.names().some((name) => name.startsWith('worker'))) this.startWorker(null);
  }

  async keepAgents(files: readonly string[]): Promise<void> {
    const agents = [...this.#byName].filter(([, { agent }]) => agent !== null);
    const left = agents.filter(([, { agent }]) => !files.includes(agent?.file ?? '')).map(([name]) => name);
    await Promise.all(left.map((name) => this.stop(name)));
    if (left.length > 0) this.startWorkflows();
  }

  startWorker(agent: AgentRequest | null): void {
    // Clients may release or request an agent while all of them end.
    if (this.#isEnding) return;
    const file = agent?.file ?? null;
    const name = workerName(file, (wanted) => this.#byName.has(wanted));
    let place = 0;
    while (this.#places.has(place)) place += 1;
    this.#places.set(place, name);
    this.#start(typescriptWorker(this.#context, name, file, place), agent);
  }

  async stop(name: string): Promise<void> {
    const child = this.#byName.get(name);
    await child?.supervised.stop();
    child?.log.close();
    this.#byName.delete(name);
    for (const [place, worker] of this.#places) if (worker === name) this.#places.delete(place);
  }

  /** Workers first: they finish what they can while the server still listens. */
  async end(): Promise<void> {
    this.#isEnding = true;
    const workers = this.names().filter((name) => name !== TEMPORAL_SERVER);
    await Promise.all(workers.map((name) => this.stop(name)));
    await this.stop(TEMPORAL_SERVER);
  }

  #start(child: ChildSpec, agent: AgentRequest | null = null): void {
    const log = openChildLog(this.#context.folders.logs, child.name);
    this.#byName.set(child.name, { supervised: supervise(child, log, this.#onEvent), log, agent });
  }
}

const urlHost = (host: string): string => (isIPv6(host) ? `[${host}]` : host);

export function describeStack(spec: StackSpec, ports: StackPorts, uiKey: string | null): StackDescription {
  return {
    version: version(),
    pid: process.pid,
    engine: spec.engine,
    temporalAddress: spec.temporal?.address ?? `127.0.0.1:${ports.temporal}`,
    namespace: spec.temporal?.namespace ?? 'default',
    uiUrl: uiKey === null ? null : uiUrl(ports.ui, uiKey),
    metricsUrl: spec.metrics === null ? null : `http://${urlHost(spec.metrics.host)}:${spec.metrics.port}/metrics`,
    engineUrl: spec.engine.url ?? `http://127.0.0.1:${ports.engine}`,
    storeUri: spec.storeUri,
    ownsServer: spec.temporal === null,
  };
}

/** A name keeps its folder while the stack lives: active runs rely on it. */
function mergeModels(known: Models | null, wanted: Models): Models {
  for (const [name, folder] of Object.entries(wanted)) {
    const other = known?.[name];
    if (other === undefined || other === folder) continue;
    throw badConfig(
      `the model ${name} can stand for only one folder while the local stack runs: it is ${other}, got ${folder}; use another name or stop the other command first`,
    );
  }
  return { ...known, ...wanted };
}
