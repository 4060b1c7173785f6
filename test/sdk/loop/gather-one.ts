import {
  gatherTrajectoryGroups,
  Trajectory,
  TrajectoryGroup,
  type MessagesAndChoices,
  type TrainableModel,
} from '../../../sdk/index.ts';

interface Played {
  question?: string;
  rewards?: number[];
  isSampled?: boolean;
  split?: 'train' | 'val';
}

/** One group of as many attempts as there are rewards. */
export async function gather(
  model: TrainableModel,
  { question = 'a digit?', rewards = [0, 1, 1], isSampled = true, split = 'train' }: Played = {},
): Promise<TrajectoryGroup[]> {
  const play = async ({ attempt }: { attempt: number }) => {
    const messages: MessagesAndChoices = [{ role: 'user', content: question }];
    if (isSampled) {
      const asked = { model: model.getInferenceName(), messages: [{ role: 'user' as const, content: question }] };
      messages.push((await model.openai().chat.completions.create(asked)).choices[0]!);
    } else messages.push({ role: 'assistant', content: 'made up' });
    return new Trajectory({ messagesAndChoices: messages, reward: rewards[attempt]! });
  };
  const group = new TrajectoryGroup(
    rewards.map(() => play),
    { metadata: { scenarioId: question } },
  );
  return gatherTrajectoryGroups([group], { model, split });
}
