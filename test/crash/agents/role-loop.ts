/** A script whose model has two roles: both policies are trained in each of its steps. `--name`: the model's. */
import { parseArgs } from 'node:util';
import { gatherTrajectoryGroups, policy, TrainableModel, Trajectory, TrajectoryGroup, type RoleModel } from 'temper-rl';
import { LocalBackend } from 'temper-rl/local';

const STEPS = 2;
const GROUPS = 2;
const ATTEMPTS = 4;

const { values } = parseArgs({ options: { name: { type: 'string', default: 'roles' } } });
const backend = new LocalBackend();
const model = new TrainableModel({
  name: values.name,
  project: 'roles',
  baseModel: 'pocket',
  rollout: { maxTokens: 4 },
  roles: { first: policy(), second: policy('b') },
  competing: true,
});
await model.register(backend);
for (let step = await model.getStep(); step < STEPS; step++) {
  const questions = Array.from({ length: GROUPS }, (_, group) => `${step + 2}*${group + 3}=`);
  const groups = await gatherTrajectoryGroups(
    questions.map((question) => new TrajectoryGroup(Array.from({ length: ATTEMPTS }, () => () => play(question)))),
    { model },
  );
  const trained = await model.train(groups, { learningRate: 1e-3 });
  console.log(`step ${trained.step}`);
}
await backend.close();

/** Rewarded by what they said, so that rewards differ. */
async function play(question: string) {
  const [first, second] = await Promise.all([say(model.role('first'), question), say(model.role('second'), question)]);
  const won = first.text < second.text ? 1 : first.text > second.text ? -1 : 0;
  return {
    first: new Trajectory({ messagesAndChoices: first.said, reward: won }),
    second: new Trajectory({ messagesAndChoices: second.said, reward: 0 - won }),
  };
}

async function say(role: RoleModel, question: string) {
  const messages = [{ role: 'user' as const, content: question }];
  const { choices } = await role.openai().chat.completions.create({ model: role.name, messages });
  return { said: [...messages, choices[0]!], text: choices[0]!.message.content ?? '' };
}
