/** One game as a trajectory. */
import { Trajectory, type History, type Model } from 'temper-rl';
import { MAX_TOKENS, playGame, type Game } from './game.ts';

/** Each turn starts afresh, so each is a history of its own. */
export async function playTrajectory(model: Model, game: Game): Promise<Trajectory> {
  const openai = model.openai();
  const histories: History[] = [];
  const { reward, metrics } = await playGame(game, async (board) => {
    const messages = [{ role: 'user' as const, content: board }];
    const completion = await openai.chat.completions.create({ model: model.name, messages, max_tokens: MAX_TOKENS });
    const choice = completion.choices[0]!;
    histories.push({ messagesAndChoices: [...messages, choice], tools: null });
    return choice.message.content;
  });
  const [first, ...additionalHistories] = histories;
  return new Trajectory({ ...first!, additionalHistories, reward, metrics: { ...metrics } });
}
