/** Probes of the flags of `temper auto`; see flag-probes.ts. */
type Planned = readonly [without: string, given: string];

const AUTO = 'auto a-task --until scenarios';
const AUTO_RUN = 'auto a-task --base-model pocket';
const added = (command: string, flag: string): Planned => [command, `${command} ${flag}`];

export const AUTO_FLAGS: Readonly<Record<string, Planned>> = {
  'auto --out': added(AUTO, '--out elsewhere'),
  'auto --mcp': added(AUTO, '--mcp no-such-server'),
  'auto --tools': added(AUTO, '--tools a'),
  'auto --mcp-env': added(AUTO, '--mcp-env A'),
  'auto --instructions': added(AUTO, '--instructions short'),
  'auto --count': added(AUTO, '--count 9'),
  'auto --held-out': added(AUTO, '--held-out 2'),
  'auto --attempts': added(AUTO, '--attempts 2'),
  'auto --model': added(AUTO, '--model openai/gpt-5'),
  'auto --judge': added(AUTO, '--judge openai/gpt-5'),
  'auto --key-env': [
    'auto a-task --until agent --model http://127.0.0.1:9/v1#m',
    'auto a-task --until agent --model http://127.0.0.1:9/v1#m --key-env MY_KEY',
  ],
  'auto --price': added(AUTO, '--price openai/gpt-5-mini=1/2'),
  'auto --max-cost-usd': added(`${AUTO} --price openai/gpt-5-mini=1/2`, '--max-cost-usd 1'),
  'auto --base-model': added(AUTO, '--base-model pocket'),
  'auto --steps': added(AUTO_RUN, '--steps 9'),
  'auto --groups-per-step': added(AUTO_RUN, '--groups-per-step 3'),
  'auto --group-size': added(AUTO_RUN, '--group-size 3'),
  'auto --max-tokens': added(AUTO_RUN, '--max-tokens 9'),
  'auto --learning-rate': added(AUTO_RUN, '--learning-rate 0.5'),
  'auto --until': added(AUTO_RUN, '--until agent'),
  'auto --redo': added(AUTO_RUN, '--redo agent'),
};
