import { expect, test } from 'vitest';
import { joinTexts, writeFamilies } from '../../../workers/metrics/exposition.ts';
import { Counter, Histogram } from '../../../workers/metrics/instruments.ts';

test('a histogram counts up to each bound, a counter adds up by labels', () => {
  const seconds = new Histogram({ name: 'call_seconds', help: 'Time.', labels: ['agent', 'status'] }, [0.1, 1]);
  for (const value of [0.1, 0.5, 7]) seconds.observe(['a', '200'], value);
  const errors = new Counter({ name: 'errors_total', help: 'Of calls.', labels: ['operation'] });
  errors.add(['read']);
  errors.add(['read'], 2);
  expect(writeFamilies([seconds.family(), errors.family()])).toBe(`# HELP call_seconds Time.
# TYPE call_seconds histogram
call_seconds_bucket{agent="a",status="200",le="0.1"} 1
call_seconds_bucket{agent="a",status="200",le="1"} 2
call_seconds_bucket{agent="a",status="200",le="+Inf"} 3
call_seconds_sum{agent="a",status="200"} 7.6
call_seconds_count{agent="a",status="200"} 3
# HELP errors_total Of calls.
# TYPE errors_total counter
errors_total{operation="read"} 3
`);
});

test('a label cannot end its sample', () => {
  const help = 'One\nline.';
  const samples = [{ labels: { run: 'a"} 1\n\\b' }, value: Infinity }];
  expect(writeFamilies([{ name: 'x', type: 'gauge', help, samples }])).toBe(
    '# HELP x One\\nline.\n# TYPE x gauge\nx{run="a\\"} 1\\n\\\\b"} +Inf\n',
  );
});

test('texts of several processes become one: each name once, each sample with its process', () => {
  const text = (value: number) =>
    `# HELP up Running.\n# TYPE up gauge\nup ${value}\n# HELP s Time.\n# TYPE s histogram\ns_bucket{le="+Inf"} ${value}\ns_sum ${value}\ns_count ${value}\n`;
  const joined = joinTexts(
    [
      { labels: { process: 'a' }, text: text(1) },
      { labels: { process: 'b' }, text: `${text(2)}# TYPE queue gauge\nqueue{task_queue="secret} {"} 3\n` },
    ],
    (line) => line.startsWith('s_count'),
  );
  expect(joined).toBe(`# HELP up Running.
# TYPE up gauge
up{process="a"} 1
up{process="b"} 2
# HELP s Time.
# TYPE s histogram
s_bucket{process="a",le="+Inf"} 1
s_sum{process="a"} 1
s_bucket{process="b",le="+Inf"} 2
s_sum{process="b"} 2
# TYPE queue gauge
queue{process="b",task_queue="secret} {"} 3
`);
});
