import { expect, test } from 'vitest';
import { writeFamilies } from '../../../workers/metrics/exposition.ts';
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
