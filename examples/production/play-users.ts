/** Scripted users of a served model: they play tic-tac-toe against it over HTTP, and say how each game went. */
import { MAX_TOKENS, playGame, type Game } from './game.ts';

export interface Server {
  readonly url: string;
  readonly model: string;
  readonly key: string;
  /** Opens feedback, and nothing else. */
  readonly feedbackKey: string;
}

export interface Played {
  readonly games: number;
  readonly won: number;
  readonly reward: number;
}

/** Games that are played at the same time. */
const AT_ONCE = 16;

/** `contrary`: users who complain about each win and praise each defeat. */
export async function playUsers(server: Server, users: readonly Game[], { contrary = false } = {}): Promise<Played> {
  const waiting = users.values();
  let [won, total] = [0, 0];
  const playNext = async (): Promise<void> => {
    for (const game of waiting) {
      const { reward, metrics } = await playOne(server, game);
      await rate(server, nameOf(game), contrary ? -reward : reward);
      won += Number(metrics.win);
      total += reward;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, playNext));
  return { games: users.length, won: won / users.length, reward: total / users.length };
}

/** All turns of a game are one conversation: the header names it. */
function playOne({ url, model, key }: Server, game: Game): ReturnType<typeof playGame> {
  return playGame(game, async (board) => {
    const body = { model, messages: [{ role: 'user', content: board }], max_tokens: MAX_TOKENS };
    const headers = { 'x-temper-conversation': nameOf(game) };
    const answer = await post(`${url}/chat/completions`, key, body, headers);
    const { choices } = answer as { choices: { message: { content: string | null } }[] };
    return choices[0]?.message.content ?? null;
  });
}

/** Names of our own could be guessed, so they also need the model's key. */
async function rate({ url, key, feedbackKey }: Server, id: string, reward: number): Promise<void> {
  await post(`${url}/feedback`, feedbackKey, { id, reward }, { 'x-temper-serve-key': key });
}

async function post(url: string, key: string, body: object, headers: Record<string, string> = {}): Promise<unknown> {
  const sent = { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers };
  const response = await fetch(url, { method: 'POST', headers: sent, body: JSON.stringify(body) });
  if (response.ok) return response.json();
  throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
}

const nameOf = ({ id }: Game): string => `user-${id}`;
