/** `temper serve` with a scripted engine, recording into a store on disk; for each test a new one. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import OpenAI from 'openai';
import { afterEach, beforeEach } from 'vitest';
import { startRecording, type StartedRecording } from '../../../cli/serve/start-recording.ts';
import type { RecordingPlan } from '../../../cli/serve/plan-serve.ts';
import { connectEngine, type EngineConnection } from '../../../play/connections/engine-connection.ts';
import { decodeRecords } from '../../../store/bytes/journal-records.ts';
import { FileStore } from '../../../store/bytes/file-store.ts';
import type { Recording } from '../../../core/contract/records.ts';
import { readRecordings } from '../../../store/records/production/recordings.ts';
import { servePolicy } from '../../../workers/serving/serve-policy.ts';
import type { KeyedServer } from '../../../play/transports/keyed-server.ts';
import { fakeAdapterSha256, startFakeEngine, type FakeEngine } from '../../fake-engine.ts';
import { askAt, type Answer } from './asking.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

export const KEY = 'a key of the model';
export const FEEDBACK_KEY = 'a key of feedback';
export const ALL: RecordingPlan = { share: 1, days: null, redact: null, feedbackKey: FEEDBACK_KEY, isNewKey: false };

export const user = (content: string) => ({ role: 'user' as const, content });
export const assistant = (content: string) => ({ role: 'assistant' as const, content });

export class RecordingServer {
  readonly warnings: string[] = [];
  readonly folder = temporaryFolder();
  readonly store = new FileStore(this.folder);
  client = new OpenAI({ apiKey: KEY });
  #engine: FakeEngine | null = null;
  #connection: EngineConnection | null = null;
  #serving: KeyedServer | null = null;
  #recording: StartedRecording | null = null;

  get port(): number {
    return this.#serving!.port;
  }

  /** Begins, or begins anew. Null: without `--record`. */
  async serve(plan: RecordingPlan | null): Promise<void> {
    await this.#stop();
    this.#engine ??= await startFakeEngine({ answer: ({ messages }) => `re: ${messages.at(-1)!.content}` });
    this.#connection ??= connectEngine({ url: this.#engine.url, key: this.#engine.key });
    this.#recording = plan && (await startRecording(this.store, 'demo', plan, (line) => this.warnings.push(line)));
    const policy = {
      name: 'demo@2',
      adapterSha256: fakeAdapterSha256('demo@2')!,
      names: ['demo'],
      rollout: { temperature: 0.75, maxTokens: 33 },
    };
    this.#serving = await servePolicy({
      host: '127.0.0.1',
      port: 0,
      hosts: [],
      key: KEY,
      models: ['demo'],
      policy: () => policy,
      engine: () => ({ connection: () => this.#connection }),
      ...(this.#recording && { recorder: this.#recording.recorder, feedback: this.#recording.feedback }),
    });
    this.client = new OpenAI({ baseURL: `http://127.0.0.1:${this.port}/v1`, apiKey: KEY, maxRetries: 0 });
  }

  chat(messages: { role: 'user' | 'assistant'; content: string }[], more: object = {}): Promise<OpenAI.ChatCompletion> {
    return this.client.chat.completions.create({ model: 'demo', messages, ...more });
  }

  rate(body: object, key = FEEDBACK_KEY, modelKey = ''): Promise<Answer> {
    const keys = { authorization: `Bearer ${key}`, 'x-temper-serve-key': modelKey };
    return askAt(this.port, '/v1/feedback', keys, JSON.stringify(body));
  }

  async recorded(): Promise<Recording[]> {
    const found = [];
    for await (const each of readRecordings(this.store, 'demo')) found.push(each);
    return found;
  }

  /** All that the store has, recordings as text. */
  onDisk(): string {
    const entries = existsSync(this.folder) ? readdirSync(this.folder, { recursive: true, withFileTypes: true }) : [];
    const texts = entries
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => {
        const bytes = readFileSync(join(parentPath, name));
        if (!name.endsWith('.journal')) return `${name}\n${bytes.toString('utf8')}`;
        return [...decodeRecords(bytes)].map((payload) => gunzipSync(payload).toString('utf8')).join('\n');
      });
    return texts.join('\n');
  }

  async close(): Promise<void> {
    await this.#stop();
    await this.#connection?.close();
    await this.#engine?.close();
  }

  async #stop(): Promise<void> {
    await this.#serving?.close();
    await this.#recording?.close();
  }
}

/** The server of the test that runs. */
export function recordingServer(): () => RecordingServer {
  let server: RecordingServer;
  beforeEach(() => {
    server = new RecordingServer();
  });
  afterEach(() => server.close());
  return () => server;
}
