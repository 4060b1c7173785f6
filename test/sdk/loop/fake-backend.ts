/** A backend whose engine is the fake one and whose trainer writes manifests: everything between is the product's. */
import { join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';

import type { TrainInput } from '../../../core/contract/contract.ts';
import { canonicalJson, sha256Hex } from '../../../core/text/hashes.ts';
import { MAIN_POLICY } from '../../../core/contract/wire-constants.ts';
import type { Backend, OpenBackend } from '../../../sdk/loop/backend.ts';
import { connectEngine } from '../../../play/connections/engine-connection.ts';
import { TrainableModel, type TrainableModelOptions } from '../../../sdk/index.ts';
import { FileStore } from '../../../store/bytes/file-store.ts';
import { manifestKey } from '../../../store/layout.ts';
import { checkpointOf, parseCommit, type Manifest } from '../../../store/records/runs/manifest.ts';
import type { StepWork } from '../../../workflows/train-step.ts';
import { fakeAdapterSha256, startFakeEngine, type FakeEngine } from '../../fake-engine.ts';
import { madeManifest } from '../../store/records/made-manifest.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

export class FakeWorld {
  engine!: FakeEngine;
  folder!: string;
  /** The store of a project in this folder. */
  store!: FileStore;
  /** Steps that the trainer was asked for, in order. */
  readonly works: StepWork[] = [];
  /** Lines that the script prints. */
  readonly printed: string[] = [];
  /** More metrics of the trainer's next steps. */
  metrics: Record<string, number> = {};
  readonly #closing: (() => Promise<void>)[] = [];

  static async open(): Promise<FakeWorld> {
    const world = new FakeWorld();
    await world.#begin();
    return world;
  }

  /** A new world for each test of a file. */
  static ofEachTest(): FakeWorld {
    const world = new FakeWorld();
    beforeEach(() => world.#begin());
    afterEach(() => world.close());
    return world;
  }

  async #begin(): Promise<void> {
    this.engine = await startFakeEngine();
    this.folder = temporaryFolder();
    this.store = new FileStore(join(this.folder, '.temper', 'store'));
    this.works.length = 0;
    this.printed.length = 0;
    this.metrics = {};
  }

  /** The model of a script that begins (again). */
  async model(options: Partial<TrainableModelOptions> = {}): Promise<TrainableModel> {
    const model = new TrainableModel({ name: 'one', project: 'demo', baseModel: 'pocket', seed: 1, ...options });
    await model.register(this.backend());
    return model;
  }

  backend(): Backend {
    const tasks: (() => Promise<void>)[] = [];
    const engineAddress = { url: this.engine.url, key: this.engine.key };
    const engine = connectEngine(engineAddress);
    this.#closing.push(() => engine.close());
    const opened: OpenBackend = {
      store: this.store,
      engine,
      engineAddress,
      baseModel: 'pocket',
      codeSha256: sha256Hex('script'),
      runStep: ({ work }) => this.#train(work),
      track: () => Promise.resolve(),
      print: (line) => void this.printed.push(line),
      atClose: (task) => void tasks.push(task),
    };
    return {
      open: async () => opened,
      close: async () => {
        for (const task of tasks) await task();
      },
    };
  }

  async close(): Promise<void> {
    for (const task of this.#closing.splice(0)) await task();
    await this.engine.close();
  }

  async #train(work: StepWork) {
    this.works.push(work);
    const { run, inputsSha256 } = work.input;
    const step = work.kind === 'train' ? work.input.step : 0;
    const place = { run, branch: 0, step };
    const said = work.kind === 'train' ? pick(work.input) : {};
    const adapterSha256 = fakeAdapterSha256(`${run}@${step}`)!;
    const others = policiesOf(work).map(
      (name) => [name, weights(fakeAdapterSha256(`${run}@${step}:${name}`)!)] as const,
    );
    const policies = others.length === 0 ? {} : { policies: Object.fromEntries(others) };
    const metrics = { loss: 1, ...this.metrics };
    const manifest = madeManifest({ branch: 0, step }, { ...said, ...policies, inputsSha256, adapterSha256, metrics });
    const { bytes } = await this.store.publish(
      manifestKey(place),
      new TextEncoder().encode(`${canonicalJson(manifest)}\n`),
    );
    const checkpoint = checkpointOf(run, parseCommit(bytes, manifestKey(place)));
    return { checkpoint, metrics, seconds: {}, found: false };
  }
}

function pick({ parent, groups, learningRate, train, supervised, roles }: TrainInput): Partial<Manifest> {
  return { parent, groups, learningRate, train, ...(supervised && { supervised }), ...(roles && { roles }) };
}

/** Beside `main`. */
function policiesOf(work: StepWork): string[] {
  if (work.kind === 'initialise') return work.input.policies ?? [];
  return [...new Set(Object.values(work.input.roles ?? {}))].filter((name) => name !== MAIN_POLICY);
}

function weights(sha256: string) {
  const blob = { key: `blobs/${sha256}`, sha256, bytes: 1 };
  return { adapter: blob, optimizer: blob };
}
