/** The same game for comparison: the guesser hears a random clue in place of the spymaster's. For evaluations alone. */
import { smallAgent } from './small-agent.ts';

export default smallAgent({ name: 'codenames-small-without-clues', hearsClues: false });
