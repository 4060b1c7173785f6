/** `model.trainSft`: stores chats, plans one supervised step of them and trains it in its workflow, or finds it in the store. */
import { encodeChatExamples, readChatExamples } from '../../core/text/chat-examples.ts';
import { SupervisedStep, type ExampleRendering } from '../../core/contract/contract.ts';
import { badConfig, type TemperError } from '../../core/contract/failures.ts';
import { planLoopTraining } from './plan-loop.ts';
import { otherPolicies } from '../../core/rules/roles.ts';
import { planRendering } from '../../core/rules/supervised.ts';
import type { LoopRun } from './loop-run.ts';
import { takeStep, type TrainedStep } from './take-step.ts';
import { checkTrainSft, readSettings, type Chat, type TrainSftOptions } from './train-settings.ts';

/** Always the next step: chats do not say which step they are for, as gathered groups do. */
export async function trainChats(run: LoopRun, chats: readonly Chat[], options: TrainSftOptions): Promise<TrainedStep> {
  const { turns = 'all', overlong = 'mask', maxExampleTokens, heldOut = [], ...given } = checkTrainSft(options);
  if (chats.length === 0) throw noChats(run);
  const [other] = otherPolicies(run.config);
  if (other !== undefined) throw severalPolicies(run, other);
  const { config, checkpoint: parent, store } = run;
  const settings = await readSettings(run, given, { groups: 0, name: 'model.trainSft' });
  const examples = readChatExamples([...chats, ...heldOut], 'model.trainSft');
  const dataset = await store.putBlob(encodeChatExamples(examples));
  const limit = maxExampleTokens === undefined ? {} : { maxExampleTokens };
  const rendering = planRendering(config, { dataset, turns, overlong, ...limit });
  const step = run.step + 1;
  const supervised = checkStep(dealAll(rendering, chats.length, examples.length, step));
  const work = planLoopTraining(config, settings, { step, parent, groups: [], supervised });
  const taken = await takeStep(run, work, []);
  if (taken.metrics['trainedTokens'] !== 0) return taken;
  return { ...taken, trained: false, reason: 'every chat is above the token limit' };
}

/** In the order in which they were given; those that are held out stand after the others. */
function dealAll(rendering: ExampleRendering, trained: number, all: number, step: number): SupervisedStep {
  const places = Array.from({ length: all }, (_, index) => index);
  const heldOut = places.slice(trained);
  return {
    rendering,
    examples: places.slice(0, trained),
    ...(heldOut.length === 0 ? {} : { heldOut, ...(step === 1 ? { scoresParent: true } : {}) }),
  };
}

function checkStep(step: SupervisedStep): SupervisedStep {
  const issue = SupervisedStep.safeParse(step).error?.issues[0];
  if (issue === undefined) return step;
  throw badConfig(
    `model.trainSft has an invalid option ${String(issue.path.at(-1))} (${issue.message}); see docs/imperative-api.md for the available options`,
  );
}

function severalPolicies({ name }: LoopRun, other: string): TemperError {
  return badConfig(
    `model.trainSft trains the policy main alone, and the roles of ${name} train ${other} too; train the chats in a model without roles, and begin this one with its adapter`,
  );
}

function noChats({ name }: LoopRun): TemperError {
  return badConfig(`${name} would be trained on nothing because the list of chats is empty; pass at least one`);
}
