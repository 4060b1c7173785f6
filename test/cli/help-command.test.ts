import { expect, test } from 'vitest';
import { COMMANDS } from '../../cli/commands.ts';
import { temporaryFolder } from './fixture-store.ts';
import { runCli } from './run-cli.ts';

test('temper alone lists every command', async () => {
  const { exitCode, stdout } = await runCli(await temporaryFolder(), []);
  expect(exitCode).toBe(0);
  expect(stdout).toMatchInlineSnapshot(`
    "temper 0.1.0: train LLM agents with reinforcement learning, durably

    Usage: temper COMMAND [flags]

    Commands:
      init         start a project: an agent that learns, its test, and the configuration
      auto         make an agent for a task in one sentence, train it, and evaluate it
      scenarios    generate scenarios for an MCP server or a task with a hosted model
      estimate     estimate tokens, time and cost of a training run before it starts
      train        start a training run or continue it, and show its progress
      sft          train on a file of chats (supervised), and show the progress
      distill      write the best attempts as a file of chats for temper sft
      fork         start a run from a checkpoint of another run, without copying it
      runs         list the runs of this project
      show         show one run: its state, its results and what it is waiting for
      watch        watch a run live
      ui           open a window on the runs of a store in the browser, live; steer them from there
      mcp          let a coding agent look at runs: a read-only MCP server on stdin and stdout
      reward       give an attempt of a run its reward, or many by a file
      rewards      list the attempts of a run that wait for a reward, oldest first
      review       take rewards for attempts over HTTP and behind signed links; needs no engine and no GPU
      pause        pause a run after its current step
      resume       continue a paused run
      set          change settings of a running run, starting with its next step
      rollback     go back to a finished step and train the following steps again, on a new branch
      stop         end a run after its current step, and keep the result
      cancel       end a run immediately; committed steps stay
      report       write an HTML report: curves, groups side by side, attempts
      track        tell a tracker of a run that began without it, or show what trackers know
      schedule     retrain on a schedule, each time from the newest checkpoint
      checkpoints  list a run's checkpoints, copy the run to or from another store, or remove weights or the run
      gc           show what nothing in the store needs any more, or remove it
      verify       check every hash of a run, and recompute one step
      try          play an agent a few times and show what happens, without training
      eval         compare models and checkpoints on held-out scenarios, without training
      export       write a trained model to a folder: its adapter, merged weights, GGUF or MLX
      serve        serve a trained model over HTTP, as OpenAI and Anthropic do; needs no Temporal server
      production   show what temper serve --record kept of a run, with its feedback, or one conversation
      promote      make a checkpoint a run's production, go back to the one before, or list promotions
      deploy       deploy a checkpoint to a host, and prove that the host serves it
      deployments  list where checkpoints are deployed, with their proofs
      dev          run the local stack in the foreground: Temporal server and UI, workers, GPU worker
      worker       run a TypeScript worker for a deployment: workflows and the agents you pass
      gpu-worker   run a GPU worker on its own machine: it serves the model and trains it
      setup        install an engine that Temper does not bring along: vllm
      doctor       check server, queues, engine, store and environments, and say what to fix

    See temper COMMAND --help. Exit codes: 0 done, 1 failed, 2 wrong input."
  `);
});

test.each(COMMANDS.flatMap(({ name, actions = [] }) => [name, ...actions.map((action) => action.name)]))(
  'temper help %s is its --help',
  async (name) => {
    const folder = await temporaryFolder();
    const words = name.split(' ');
    const asked = await runCli(folder, ['help', ...words]);
    expect(asked).toEqual(await runCli(folder, [...words, '--help']));
    expect(asked.stdout).toContain(`Usage: temper ${name}`);
  },
);

test('help for a command that does not exist says which is meant', async () => {
  const { exitCode, stderr } = await runCli(await temporaryFolder(), ['help', 'trian']);
  expect([exitCode, stderr]).toEqual([2, 'temper: unknown command trian; did you mean temper train?']);
});
