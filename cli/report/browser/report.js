// Runs in the reader's browser. Everything that a model or an agent wrote arrives as data and is put on the page by
// textContent alone: nothing here parses HTML.
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const style = getComputedStyle(document.documentElement);
  const css = (name) => style.getPropertyValue(name).trim();

  function element(tag, className, text) {
    const node = document.createElement(tag);
    if (className) node.className = className;
    if (text !== undefined && text !== null) node.textContent = text;
    return node;
  }

  function number(value) {
    if (value === null || value === undefined) return '–';
    if (Number.isInteger(value)) return String(value);
    const size = Math.abs(value);
    return size >= 1e-3 && size < 1e5 ? value.toPrecision(3) : value.toExponential(1);
  }

  // ---- curves ----
  const sync = uPlot.sync('steps');
  let plots = [];
  const WHOLE_STEPS = [1, 10, 100, 1e3, 1e4, 1e5].flatMap((power) => [power, 2 * power, 5 * power]);

  function drawCharts() {
    for (const plot of plots) plot.destroy();
    plots = [];
    for (const holder of document.querySelectorAll('[data-section]')) {
      holder.replaceChildren();
      // Folded parts have no width to draw into.
      if (holder.closest('details:not([open])')) continue;
      const charts = data.charts.filter(({ section }) => section === holder.dataset.section);
      plots.push(...charts.map((chart) => drawChart(holder, chart, chart === data.charts[0])));
    }
  }

  function drawChart(holder, chart, wide) {
    const card = element('section', wide ? 'card chart wide' : 'card chart');
    card.append(element('h3', '', chart.title), element('p', 'note', chart.note));
    const legend = element('div', 'legend');
    const place = element('div', 'plot');
    card.append(place, legend);
    holder.append(card);
    const values = legendEntries(legend, chart);
    const options = {
      width: Math.max(240, place.clientWidth),
      height: wide ? 260 : 190,
      legend: { show: false },
      cursor: { sync: { key: sync.key }, points: { size: 6 }, y: false, drag: { x: true, y: false } },
      scales: { x: { time: false }, y: chart.range ? { range: chart.range } : {} },
      axes: [
        { ...axis(), incrs: WHOLE_STEPS },
        { ...axis(), size: 60, values: (_, ticks) => ticks.map(number) },
      ],
      series: [{ label: 'step' }, ...chart.series.map(seriesOptions)],
      hooks: { setCursor: [(plot) => showValues(plot, chart, values)] },
    };
    return new uPlot(options, [chart.x, ...chart.series.map((series) => series.values)], place);
  }

  function axis() {
    return {
      stroke: css('--dim'),
      grid: { stroke: css('--line'), width: 1 },
      ticks: { stroke: css('--line'), width: 1 },
      font: '11px system-ui, sans-serif',
    };
  }

  function seriesOptions(series) {
    const stroke = css(series.color);
    if (series.style === 'faint') return { stroke, width: 1, spanGaps: true, points: { show: false } };
    if (series.style === 'points') {
      return {
        stroke,
        width: 1.5,
        dash: [4, 4],
        spanGaps: true,
        points: { show: true, size: 8, width: 2, fill: css('--card') },
      };
    }
    return { stroke, width: 2, spanGaps: true, points: { show: series.values.length === 1 } };
  }

  function legendEntries(legend, chart) {
    const step = element('span', '', '');
    const values = chart.series.map((series) => {
      const entry = element('span');
      const mark = element('i');
      mark.style.background = css(series.color);
      const value = element('b', '', '');
      entry.append(mark, `${series.label} `, value);
      legend.append(entry);
      return value;
    });
    legend.append(step);
    return { step, values };
  }

  function showValues(plot, chart, { step, values }) {
    const at = plot.cursor.idx;
    const last = chart.x.length - 1;
    const index = at === null || at === undefined ? null : at;
    step.textContent = index === null ? '' : `at step ${chart.x[index]}`;
    chart.series.forEach((series, position) => {
      values[position].textContent = number(index === null ? lastKnown(series.values, last) : series.values[index]);
    });
  }

  function lastKnown(values, from) {
    for (let index = from; index >= 0; index--) if (values[index] !== null) return values[index];
    return null;
  }

  // ---- attempts ----
  const tip = element('div');
  tip.id = 'tip';
  tip.hidden = true;

  function drawAttempts() {
    const picker = document.getElementById('picker');
    const place = document.getElementById('attempts');
    if (data.attemptSets.length === 0) {
      place.append(element('p', 'dim', 'No attempts are recorded yet.'));
      return;
    }
    const buttons = data.attemptSets.map((set, index) => {
      const name = set.kind === 'eval' ? `eval after ${set.step}` : `step ${set.step}`;
      const button = element('button', '', set.label ?? name);
      button.type = 'button';
      button.addEventListener('click', () => show(index));
      picker.append(button);
      return button;
    });
    const firstStep = data.attemptSets.findIndex((set) => set.kind === 'step');
    show(Math.max(0, firstStep));

    function show(index) {
      buttons.forEach((button, position) => button.setAttribute('aria-pressed', String(position === index)));
      const set = data.attemptSets[index];
      place.replaceChildren(...set.groups.map(drawGroup));
      if (set.leftOut) place.append(element('p', 'note', `${set.leftOut}; the store has all of them.`));
    }
  }

  function drawGroup(group) {
    const node = element('section', 'group');
    const header = element('header');
    header.append(element('h3', '', group.title), element('span', 'dim', group.scenario), rewardStrip(group));
    const row = element('div', 'attempts');
    row.tabIndex = 0;
    row.append(...group.attempts.map(drawAttempt));
    node.append(header, row);
    return node;
  }

  /** One small bar for each attempt: the group's spread at a glance. */
  function rewardStrip(group) {
    const strip = element('span', 'strip');
    for (const attempt of group.attempts) {
      const bar = element('i');
      if (attempt.reward !== null)
        bar.style.background = attempt.reward > 0 ? css('--good') : attempt.reward < 0 ? css('--bad') : css('--faint');
      bar.dataset.tip = `${attempt.title}: ${attempt.reward === null ? 'no reward' : `reward ${number(attempt.reward)}`}`;
      strip.append(bar);
    }
    return strip;
  }

  function drawAttempt(attempt) {
    const isLong = attempt.turns.some((turn) =>
      [...turn.messages, turn.answer].some((message) => message.text.length > 120),
    );
    const node = element('article', isLong ? 'card attempt long' : 'card attempt');
    const header = element('header');
    const tone = attempt.reward > 0 ? 'reward good' : attempt.reward < 0 ? 'reward bad' : 'reward';
    const reward = element('span', tone, attempt.reward === null ? 'no reward' : number(attempt.reward));
    if (attempt.advantage !== null)
      reward.dataset.tip = `advantage ${number(attempt.advantage)} (reward minus the group's mean)`;
    header.append(element('span', 'dim', attempt.title), reward);
    node.append(header, element('p', 'facts', factsOf(attempt)));
    if (attempt.failure) node.append(element('p', 'wrong', attempt.failure));
    if (attempt.explanation) node.append(element('p', 'verdict', attempt.explanation));
    node.append(...attempt.turns.map(drawTurn));
    if (attempt.leftOut) node.append(element('p', 'note', `${attempt.leftOut} not shown`));
    if (attempt.hosted.length > 0) node.append(drawLines('hosted models', attempt.hosted));
    if (attempt.logs.length > 0) node.append(drawLines('log', attempt.logs));
    return node;
  }

  function factsOf(attempt) {
    const facts = Object.entries(attempt.metrics)
      .filter(([, value]) => value !== false)
      .map(([name, value]) => (value === true ? name : `${name} ${number(value)}`));
    if (attempt.truncated) facts.push('truncated');
    return facts.join(' · ') || '\u00a0';
  }

  function drawLines(title, lines) {
    const node = element('details');
    node.append(element('summary', '', `${title} (${lines.length})`), element('pre', '', lines.join('\n')));
    return node;
  }

  function drawTurn(turn) {
    const node = element('div', 'turn');
    node.append(...turn.messages.map((message) => drawMessage(message, 'message')));
    const answer = drawMessage(turn.answer, 'message answer');
    answer.dataset.tip = `${turn.promptTokens} prompt tokens, ${turn.tokenIds.length} sampled, ended by ${turn.finishReason}`;
    node.append(answer, drawTokens(turn));
    if (turn.reward !== null && turn.reward !== undefined)
      node.append(element('p', 'note', `this turn earned ${number(turn.reward)}`));
    return node;
  }

  function drawMessage(message, className) {
    const node = element('div', className);
    node.append(
      element('span', 'role', message.role),
      element('pre', '', message.text === '' ? '(empty)' : message.text),
    );
    return node;
  }

  /** One cell a sampled token, the paler the less probable it was. */
  function drawTokens(turn) {
    const strip = element('div', 'tokens');
    turn.logprobs.forEach((logprob, index) => {
      const cell = element('i');
      const probability = Math.exp(logprob);
      cell.style.opacity = String(0.12 + 0.88 * probability);
      cell.dataset.tip = `token ${turn.tokenIds[index]} · probability ${probability.toFixed(3)} · log ${logprob.toFixed(3)}`;
      strip.append(cell);
    });
    return strip;
  }

  document.addEventListener('mouseover', (event) => {
    const marked = event.target instanceof Element ? event.target.closest('[data-tip]') : null;
    tip.hidden = marked === null;
    if (marked === null) return;
    tip.textContent = marked.dataset.tip;
    const box = marked.getBoundingClientRect();
    tip.style.left = `${Math.min(box.left, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${box.bottom + 6 + tip.offsetHeight > innerHeight ? box.top - tip.offsetHeight - 6 : box.bottom + 6}px`;
  });

  document.body.append(tip);
  drawCharts();
  for (const part of document.querySelectorAll('details.part')) part.addEventListener('toggle', drawCharts);
  drawAttempts();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawCharts);
  let resizing = 0;
  addEventListener('resize', () => {
    clearTimeout(resizing);
    resizing = setTimeout(drawCharts, 150);
  });
})();
