import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { DEPLOY_OPTIONS, DEPLOY_TARGETS } from '../../core/contract/deploy.ts';
import { deployCommand } from '../../cli/deploy/command.ts';
import { planDeployment } from '../../operations/plan-deployment.ts';
import { deploy } from '../../operations/deployments.ts';
import { inputOf } from '../../operations/operation.ts';
import { modelName } from '../../outbound/deploy/targets/names.ts';
import { openStore } from '../../store/bytes/open-store.ts';
import { makeRun } from '../store/records/made-run.ts';
import { temporaryProject } from './fixture-store.ts';
import { complaintIn, contextOf, runCli } from './run-cli.ts';

let project: string;
beforeEach(async () => {
  project = temporaryProject();
  await makeRun(await openStore(join(project, '.temper', 'store')), { steps: 1 });
});

const complain = (line: string) => complaintIn(project, `deploy demo@1 ${line}`.split(' '));

test('every target and every option of one has its flag', () => {
  const { to, ...flags } = deployCommand.flags;
  expect([...to.choices].toSorted()).toEqual(DEPLOY_TARGETS.toSorted());
  const options = DEPLOY_TARGETS.flatMap((target) => Object.keys(DEPLOY_OPTIONS[target].shape));
  const names = options.map((option) => option.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`));
  expect(Object.keys(flags)).toEqual(expect.arrayContaining(names));
});

test('options are those of the target, and what they must look like is said', async () => {
  expect(await complain('--repo me/demo')).toContain('--to is missing; pass a target such as --to huggingface');
  expect(await complain('--to huggingface')).toBe(
    'temper: --repo must be NAMESPACE/NAME of letters, digits, - _ and .; pass one for --to huggingface',
  );
  expect(await complain('--to huggingface --repo demo')).toContain(
    '--repo must be NAMESPACE/NAME of letters, digits, - _ and ., got demo; pass one for --to huggingface',
  );
  expect(await complain('--to huggingface --repo me/demo --endpoint e')).toBe(
    'temper: --endpoint has no effect without --to together; pass both, or leave it out',
  );
  expect(await complain('--to together --endpoint e')).toContain(
    '--repo or --bucket must say where Together fetches the adapter from',
  );
  expect(await complain('--to fireworks --account me --replace')).toContain(
    '--replace has no effect without --deployment',
  );
  expect(await complain('--to fireworks --account Me')).toContain('--account must be lowercase letters, digits and -');
  expect(await complain('--to s3 --bucket s3://key:secret@bucket')).toContain(
    '--bucket must be s3://BUCKET or s3://BUCKET/PREFIX, without credentials',
  );
  expect(await complain('--to s3 --bucket s3://bucket --no-proof --prompts 3')).toContain(
    '--prompts and --no-proof exclude each other',
  );
});

test('the base model must have a name at the target, and the run an adapter', async () => {
  expect(await complain('--to huggingface --repo me/demo')).toBe(
    'temper: the name of pocket at huggingface is not known; pass --base-model NAMESPACE/NAME',
  );
  expect(await complain('--to fireworks --account me')).toContain('pass --base-model accounts/fireworks/models/NAME');
  expect(await complain('--to huggingface --repo me/demo --base-model a?b')).toContain(
    '--base-model must be letters, digits, - _ . and /, got a?b',
  );
  await makeRun(await openStore(join(project, '.temper', 'store')), { run: 'full', steps: 1, train: { lora: null } });
  expect(await complaintIn(project, 'deploy full@1 --to s3 --bucket s3://bucket'.split(' '))).toContain(
    'takes LoRA adapters, but full@1 was trained with --full-fine-tuning; write the whole model with temper export full@1 --format merged',
  );
});

test('what is deployed, under which names and with which stages, follows from the flags', async () => {
  const store = await openStore(join(project, '.temper', 'store'));
  const plan = (line: string) => {
    const words = `demo@1 --to ${line}`.split(' ');
    const { args, flags, env } = contextOf(deployCommand, project, words);
    return planDeployment(inputOf(deploy, args, flags), { project, env }, store);
  };
  const together = 'together --bucket s3://models/adapters --base-model base/model';
  expect(await plan(together)).toMatchObject({
    policy: 'demo@1',
    options: { bucket: 's3://models/adapters' },
    baseModel: 'base/model',
    prompts: 8,
    stages: ['upload', 'register', 'wait', 'proof'],
  });
  expect(await plan(`${together} --endpoint e1 --model-name mine --prompts 3`)).toMatchObject({
    options: { endpoint: 'e1', modelName: 'mine' },
    prompts: 3,
    stages: ['upload', 'register', 'wait', 'attach', 'proof'],
  });
  expect(await plan('fireworks --account me --base-model a/b --deployment d1 --no-proof')).toMatchObject({
    options: { account: 'me', deployment: 'd1', replace: false },
    prompts: null,
    stages: ['register', 'upload', 'validate', 'load'],
  });
  expect(await plan('wandb --entity me --project games --base-model base/model')).toMatchObject({
    options: { entity: 'me', project: 'games' },
    stages: ['upload', 'proof'],
  });
  expect(await plan('vllm --url http://127.0.0.1:8000 --folder /adapters --replace')).toMatchObject({
    options: { url: 'http://127.0.0.1:8000', folder: '/adapters', replace: true },
    baseModel: null,
    stages: ['folder', 'load', 'unload', 'proof'],
  });
  expect(await plan('ollama --url http://127.0.0.1:11434 --quantize q8_0')).toMatchObject({
    options: { quantize: 'q8_0' },
    stages: ['create', 'proof'],
  });
  expect(await plan('server --url http://127.0.0.1:8080 --model-name models/demo.gguf')).toMatchObject({
    options: { url: 'http://127.0.0.1:8080', modelName: 'models/demo.gguf' },
    baseModel: null,
    stages: ['find', 'proof'],
  });
});

test('a project without deployments says how to make one', async () => {
  expect(await runCli(project, ['deploy', 'list'])).toMatchObject({
    exitCode: 0,
    stdout: 'nothing was deployed; deploy a checkpoint: temper deploy RUN --to TARGET',
  });
});

test('names at targets have few characters, and tell checkpoints apart', () => {
  expect(modelName({ run: 'demo', branch: 0, step: 12 }, 'demo@12')).toBe('demo-step12');
  expect(modelName({ run: 'My.run_2', branch: 3, step: 1 }, 'My.run_2~3@1:critic')).toBe(
    'my-run-2-critic-branch3-step1',
  );
  expect(modelName({ run: 'a'.repeat(63), branch: 0, step: 7 }, 'a@7')).toHaveLength(63);
});
