/** Agents of all SDKs against scripted answers, in one process: most of its time goes into loading the SDKs. */
import './no-network.ts';
import 'temper-rl/testing';
import './attempts.ts';
import './pages.ts';
import './mcp.ts';
import './outage.ts';
import './streams.ts';
import './given-up-streams.ts';
