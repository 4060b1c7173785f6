/** Codenames with five words and four clues, in so few bytes that the pocket model can play it. */
import { smallAgent } from './small-agent.ts';

export default smallAgent({ name: 'codenames-small', hearsClues: true });
