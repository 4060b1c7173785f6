/**
 * Lint rules of our own, for faults that no type shows. An exception says at its place why it is none:
 * `// oxlint-disable-next-line temper/RULE -- reason`.
 */
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** Repetitions up to a bound are checked as if they had none: what is linear without it is so with it. */
const BOUNDED = /\{(\d+)(?:,(\d+))?\}/g;
const LARGE = 5;
const CLASS_OR_ESCAPE = /\\.|\[(?:\\.|[^\]\\])*\]/gs;
/** Numbers of steps, not times: a busy machine finds the same. */
const LIMITS = { attackLimit: 1e6, recallLimit: 1e6, timeout: null, attackTimeout: null, incubationTimeout: null };

const verdicts = new Map();

/** Undefined where the time of a match grows no faster than the text, wherever in it the match begins. */
function superLinear(pattern, flags) {
  const widened = pattern.replace(BOUNDED, (all, least, most = least) => (Number(most) > LARGE ? '*' : all));
  if (!/[*+]|\{\d+,\}/.test(widened.replace(CLASS_OR_ESCAPE, 'x'))) return undefined;
  const key = `/${widened}/${flags}`;
  if (!verdicts.has(key)) {
    // By itself it looks for a Java or a native program.
    process.env.RECHECK_SYNC_BACKEND = 'pure';
    const { checkSync } = require('recheck');
    const { status, complexity, attack } = checkSync(widened, flags.replace(/[dv]/g, ''), LIMITS);
    verdicts.set(key, status === 'safe' ? undefined : `${complexity?.summary ?? status} ${attack?.pattern ?? ''}`);
  }
  return verdicts.get(key);
}

/** The text of a literal, or of a template in which each value is one character. */
function textOf(node) {
  if (node?.type === 'TemplateLiteral') return node.quasis.map(({ value }) => value.cooked).join('x');
  return typeof node?.value === 'string' ? node.value : undefined;
}

const linearRegex = {
  create(context) {
    const check = (node, pattern, flags) => {
      const found = superLinear(pattern, flags);
      if (found !== undefined) context.report({ node, message: `takes more than linear time: ${found}` });
    };
    const checkCall = (node) => {
      const [pattern, flags] = node.arguments.map(textOf);
      if (node.callee.name === 'RegExp' && pattern !== undefined) check(node, pattern, flags ?? '');
    };
    return {
      Literal: (node) => node.regex && check(node, node.regex.pattern, node.regex.flags),
      NewExpression: checkCall,
      CallExpression: checkCall,
    };
  },
};

/** The name of what holds a value: `a`, `this.#a`, `a!`, `a ?? 0`, `a.get(b)`. */
function nameOf(node) {
  const inner = node?.property ?? node?.left ?? node?.expression ?? node?.callee?.object;
  return node?.name ?? (inner ? nameOf(inner) : undefined);
}

const durations = {
  create(context) {
    const textOfNode = (node) => context.sourceCode.getText(node);
    const told = new Set();
    const compared = [];
    const keep = (holder, value) => value && textOfNode(value).includes('Date.now()') && told.add(nameOf(holder));
    return {
      VariableDeclarator: ({ id, init }) => keep(id, init),
      AssignmentExpression: ({ left, right }) => keep(left, right),
      PropertyDefinition: ({ key, value }) => keep(key, value),
      Property: ({ key, value }) => keep(key, value),
      CallExpression: ({ callee, arguments: values }) =>
        callee.property?.name === 'set' && keep(callee.object, values[1]),
      BinaryExpression(node) {
        const sides = [node.left, node.right];
        const at = sides.findIndex((side) => textOfNode(side) === 'Date.now()');
        if (at !== -1) compared.push({ node, other: nameOf(sides[1 - at]) });
      },
      'Program:exit'() {
        const message = 'a clock that can be set measures no duration; use performance.now()';
        for (const { node, other } of compared) if (told.has(other)) context.report({ node, message });
      },
    };
  },
};

const childExit = {
  create(context) {
    const children = new Set();
    const textOfNode = (node) => context.sourceCode.getText(node);
    return {
      VariableDeclarator: ({ id, init }) => init && /^(spawn|fork)\(/.test(textOfNode(init)) && children.add(id.name),
      Identifier: (node) => /ChildProcess/.test(textOfNode(node.typeAnnotation ?? node)) && children.add(node.name),
      CallExpression(node) {
        const { callee, arguments: values } = node;
        const [emitter, event] = callee.name === 'once' ? values : [callee.object, values[0]];
        if (event?.value === 'close' && children.has(nameOf(emitter)))
          context.report({ node, message: 'a grandchild may hold the output of a child that is dead; wait for exit' });
      },
    };
  },
};

const READERS = ['text', 'json', 'arrayBuffer', 'blob', 'bytes', 'formData'];

const boundedAnswer = {
  create: (context) => ({
    CallExpression(node) {
      if (READERS.includes(node.callee.property?.name) && node.arguments.length === 0)
        context.report({ node, message: 'an answer may have any length; read it with a bound' });
    },
  }),
};

const quadraticSpread = {
  create: (context) => ({
    CallExpression(node) {
      const callback = nearest(node, 'ArrowFunctionExpression');
      if (
        !/^Math\.(max|min)$/.test(context.sourceCode.getText(node.callee)) ||
        callback?.parent.type !== 'CallExpression'
      )
        return;
      for (const { type, argument } of node.arguments)
        if (type === 'SpreadElement' && argument.type === 'Identifier' && !isIn(callback, context, argument))
          context.report({ node, message: `is computed anew for each element; compute it once, outside` });
    },
  }),
};

function nearest(node, type) {
  return !node || node.type === type ? node : nearest(node.parent, type);
}

/** Whether what an identifier names is made within a function. */
function isIn({ range: [start, end] }, context, { name }) {
  for (let scope = context.sourceCode.getScope(arguments[2]); scope; scope = scope.upper) {
    const found = scope.set.get(name);
    if (found) return found.defs.every((each) => each.name.range[0] >= start && each.name.range[1] <= end);
  }
  return true;
}

export default {
  meta: { name: 'temper' },
  rules: {
    'linear-regex': linearRegex,
    durations,
    'child-exit': childExit,
    'bounded-answer': boundedAnswer,
    'quadratic-spread': quadraticSpread,
  },
};
