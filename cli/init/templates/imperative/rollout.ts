import { Trajectory, type TrainableModel } from 'temper-rl';
import { grade, question, type Product } from './products.ts';

/** One attempt: what was said, and what it earned. */
export async function rollout(model: TrainableModel, product: Product): Promise<Trajectory> {
  const messages = [{ role: 'user' as const, content: question(product) }];
  const completion = await model.openai().chat.completions.create({ model: model.name, messages, max_tokens: 4 });
  const [choice] = completion.choices;
  if (choice === undefined) throw new Error('the model gave no answer');
  const reward = grade(choice.message.content, product);
  return new Trajectory({ messagesAndChoices: [...messages, choice], reward, metrics: { correct: reward === 1 } });
}
