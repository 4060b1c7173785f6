/**
 * `npm run test:crash`: the slice of CI, which are some scenes of every kind and two that the tree's hash draws; `-- --all`:
 * every row, random kills and the death of everything; `--from N` goes on with scene N; `--only N,M` plays these. The last
 * line is one JSON object. `--project FOLDER` keeps the project and its undisturbed run for the next time, and with `--hold`
 * in a second terminal its stack as well.
 */
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { cacheFolder } from '../../workers/project/folders.ts';
import { vllmState } from '../../workers/install/vllm-environment.ts';
import { useCompiledCode } from '../compiled.ts';
import { draw } from '../run/tier.ts';
import { openTools, variablesOf } from '../run/tools.ts';
import type { Digest } from './evidence.ts';
import { allScenes, type Scene, type Stage } from './scenes.ts';
import { Tally } from './tally.ts';
import { playUndisturbed } from './undisturbed.ts';
import { createBucketWorld, createRanksWorld, createVllmWorld, World } from './world.ts';

const { values } = parseArgs({
  options: {
    all: { type: 'boolean' },
    from: { type: 'string' },
    only: { type: 'string' },
    seed: { type: 'string' },
    report: { type: 'string' },
    project: { type: 'string' },
    hold: { type: 'boolean' },
  },
});
const tools = await openTools();
Object.assign(process.env, variablesOf(tools));
const { python } = tools;
const compiled = await useCompiledCode();
const project = values.project === undefined ? null : resolve(values.project);
const world = new World(python, project);
/** The one that is open; never two stacks at once. */
const entered: { world: World | null; stage: Stage } = { world: null, stage: 'folder' };
const make = {
  folder: () => world,
  bucket: makeBucketWorld,
  vllm: () => createVllmWorld(python, join(world.folder, 'vllm')),
  ranks: () => createRanksWorld(python, join(world.folder, 'ranks')),
};
const hasVllm = await vllmState({ env: process.env, cache: cacheFolder(process.env) }).then(
  () => true,
  () => false,
);
/** Scenes of a slice that are others for another tree: each is met within some weeks of landings. */
const DRAWN = 2;
const SCENES = chooseScenes();
const tally = new Tally();
let isOver = false;
/** A scene in hand is played to its end: a run that goes on would be hit by what the next one aims. */
const stopped = new AbortController();
// Told twice by a terminal and by whoever started this.
process.on('SIGINT', () => stopped.abort());
process.once('SIGTERM', () => void endNow());

try {
  if (values.hold === true) await enter('folder');
  if (values.hold === true && !stopped.signal.aborted) await once(stopped.signal, 'abort');
  else await playAll();
  isOver = true;
} finally {
  await entered.world?.letGo();
  removeAll(compiled);
  if (isOver && tally.isGood() && project === null) await world.close();
  else console.log(`what is left of it is in ${world.folder}`);
}
if (values.report !== undefined) writeFileSync(values.report, JSON.stringify(tally.counts()));
if (tally.kills() > 0) console.log(`${tally.kills()} kills at random times`);
console.log(JSON.stringify(tally.summary()));
process.exit(!tally.isGood() ? 1 : stopped.signal.aborted ? 130 : 0);

/** Nobody waits for the scene in hand. */
async function endNow(): Promise<void> {
  await entered.world?.endCommands();
  await entered.world?.letGo();
  removeAll(project === null ? [world.folder, ...compiled] : compiled);
  process.exit(143);
}

function removeAll(folders: readonly string[]): void {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
}

async function playAll(): Promise<void> {
  if (values.all === true && !hasVllm)
    console.log('vLLM is not installed (temper setup vllm): its scenes are left out');
  const reference = recalled() ?? (await playReference());
  for (const scene of SCENES) {
    await play(scene, await enter(scene.stage), reference);
    if (!stopped.signal.aborted) continue;
    console.log(`stopped; --from ${scene.number + 1} goes on`);
    return;
  }
}

/** Each stage has a project and a stack of its own. */
async function enter(stage: Stage): Promise<World> {
  if (entered.world !== null && entered.stage === stage) return entered.world;
  await entered.world?.letGo();
  entered.world = await make[stage]();
  entered.stage = stage;
  await entered.world.open();
  return entered.world;
}

/** A GPU worker that stands by costs as much as the first one: only where a scene needs it. */
function makeBucketWorld(): Promise<World> {
  const isNeeded = SCENES.some((scene) => scene.stage === 'bucket' && scene.needsStandby);
  return createBucketWorld(python, join(world.folder, 'bucket'), isNeeded);
}

/** A project that is kept has it from the last time. */
function recalled(): Digest | null {
  const file = join(world.folder, 'reference.json');
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Digest) : null;
}

async function playReference(): Promise<Digest> {
  await enter('folder');
  const startedAt = Date.now();
  const reference = await playUndisturbed(world);
  console.log(`undisturbed run · ${seconds(startedAt)}`);
  writeFileSync(join(world.folder, 'reference.json'), JSON.stringify(reference));
  return reference;
}

function chooseScenes(): readonly Scene[] {
  const scenes = allScenes(Number(values.seed ?? 1)).filter(({ stage }) => hasVllm || stage !== 'vllm');
  const numbers = values.only?.split(',').map(Number);
  if (numbers !== undefined) return scenes.filter(({ number }) => numbers.includes(number));
  const others = scenes.filter(({ inSlice }) => !inSlice);
  const drawn = draw(others, DRAWN, ({ stage, title }) => `${stage}: ${title}`);
  const from = Number(values.from ?? 1);
  return scenes.filter(
    (scene) => scene.number >= from && (values.all === true || scene.inSlice || drawn.includes(scene)),
  );
}

async function play(scene: Scene, at: World, reference: Digest): Promise<void> {
  const startedAt = Date.now();
  const verdict = await scene.play(at, reference);
  tally.add(verdict);
  const { complaint, recoveries, kills } = verdict;
  const facts = [
    `${scene.number} ${scene.title}`,
    complaint === null ? 'ok' : 'FAILED',
    seconds(startedAt),
    kills === undefined ? '' : `${kills} kills`,
    ...recoveries.map(({ process: name, seconds: s }) => `${name} recovered in ${s.toFixed(1)} s`),
  ];
  console.log(facts.filter((fact) => fact !== '').join(' · '));
  if (complaint !== null) console.log(`${complaint}\nkept in ${at.keep(`scene-${scene.number}`)}`);
}

function seconds(startedAt: number): string {
  return `${((Date.now() - startedAt) / 1000).toFixed(1)} s`;
}
