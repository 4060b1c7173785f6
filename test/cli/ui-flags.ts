/** How the flags of `temper ui` and `temper mcp` show their effect. */
import { byTest, type Probe } from '../by-test.ts';

const SERVED = byTest('cli/ui/export.test.ts', 'a copied store is served without a project, under a name of its own');
const EXPORTED = byTest('cli/ui/export.test.ts', 'an export has the chosen runs, and says what it leaves out');

export const UI_FLAGS: Readonly<Record<string, Probe>> = {
  'ui --host': SERVED,
  'ui --port': byTest('cli/ui/admission.test.ts', 'the server listens at the port that it is told'),
  'ui --allow-host': SERVED,
  'ui --json': SERVED,
  'ui --store': SERVED,
  'ui --read-only': byTest('cli/ui/admission.test.ts', 'is refused by --read-only, and so are chats'),
  'ui --export': EXPORTED,
  'ui --run': EXPORTED,
  'mcp --store': byTest('cli/mcp.test.ts', 'a coding agent looks at a run over stdin and stdout'),
};
