/** `temper ui`: puts store, views, live events and actions together, and serves them until Ctrl-C. */
import { constants, setPriority } from 'node:os';
import { aborted } from 'node:util';
import { NAME_PATTERN } from '../../core/contract/wire-constants.ts';
import { UI_KEY_VARIABLE } from '../../core/names/door-keys.ts';
import type { Store } from '../../store/store.ts';
import type { ServerInfo } from '../../views/api/requests.ts';
import { SharedAnswers, type ViewContext } from '../../views/context/context.ts';
import { version } from '../../workers/version.ts';
import { EXIT } from '../command-line/errors.ts';
import { originOf, planKeyedPlace, type KeyedPlace, bearerWords } from '../command-line/keyed-place.ts';
import { readPageFiles } from '../pages/page-files.ts';
import { printJson, type Output } from '../terminal/output.ts';
import { ActionDesk } from './actions/answer-action.ts';
import { ACTION_FORMS } from './actions/forms.ts';
import type { UiChat } from './chat/chat.ts';
import type { Engines, EnginesOptions } from './chat/engines.ts';
import { DEFAULT_UI_PORT, type UiContext } from './command.ts';
import { uiEndpoints } from './endpoints.ts';
import { exportStore } from './export-store.ts';
import { LiveFeed } from './live/live-feed.ts';
import { openUiStore, openViewContext } from './view-context.ts';
import { answerView } from './server/answer-view.ts';
import { openUiServer, type UiServer } from './server/server.ts';
import { TemporalWatch } from './temporal-watch.ts';
import { isAlive } from '../../workers/process/processes.ts';
import { readOwnFile } from '../../workers/project/own-file.ts';
import { projectFolders } from '../../workers/project/folders.ts';
import { uiUrl } from '../../workers/local-stack/children/ui.ts';
import { readStackFile } from '../../workers/local-stack/protocol/stack-file.ts';

const KEYED = { command: 'temper ui', keyVariable: UI_KEY_VARIABLE, defaultPort: DEFAULT_UI_PORT };

/**
 * A run needs the processor more than those who look at it. What a chat starts inherits the priority. An export is waited
 * for.
 */
export function openInBackground(context: UiContext): Promise<number> {
  if (context.flags.export === null && context.ownsProcess === true)
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  return openUi(context);
}

export async function openUi(context: UiContext): Promise<number> {
  const store = await openUiStore(context);
  if (context.flags.export !== null) return exportTo(context, store, context.flags.export);
  await serveUntil(context, planKeyedPlace(KEYED, context), store);
  return EXIT.ok;
}

async function exportTo(context: UiContext, store: Store, folder: string): Promise<number> {
  const views = await openViewContext(store, context);
  try {
    return await exportStore(context, views, folder);
  } finally {
    await views.index.close();
  }
}

async function serveUntil(context: UiContext, place: KeyedPlace, store: Store): Promise<void> {
  const { project, env, output, signal, flags } = context;
  const temporal = new TemporalWatch({ project, env }, () => feed.tell({ kind: 'info', info: info() }));
  const views: ViewContext = { ...(await openViewContext(store, context)), waitOf: (run) => feed.waitOf(run) };
  const feed = new LiveFeed(views, {
    onFailure: (error) => output.errorLine(describeFailure(error)),
    readWait: (run) => temporal.readWait({ store, run }),
  });
  const info = (): ServerInfo => ({
    version: version(),
    store: store.uri,
    isReadOnly: flags['read-only'],
    isExport: false,
    hasTemporal: temporal.server !== null,
    temporalUi: temporal.server === null ? null : localTemporalUi(project),
    actions: ACTION_FORMS,
  });
  const acting = actLater({ project, env, store, storeUri: flags.store === null ? null : store.uri });
  const shared = new SharedAnswers();
  const desk = new ActionDesk(
    { ...context, store: () => Promise.resolve(store), engines: async () => (await acting.open()).engines },
    (run) => feed.forget(run),
  );
  const server: UiServer = await openUiServer({
    place,
    endpoints: uiEndpoints({
      info,
      feed,
      desk,
      chat: async () => (await acting.open()).chat,
      makeLink: () => `${origin}${server.makeLink()}`,
    }),
    answerView: (path, query) => {
      // A name of a run needs no escape.
      const [, run = ''] = /^runs\/([^/]+)(?:\/|$)/.exec(path) ?? [];
      if (NAME_PATTERN.test(run)) feed.want(run, path === `runs/${run}/attempts`);
      return shared.ask(`${feed.revision} ${path}?${query.toString()}`, () => answerView(views, path, query));
    },
    isReadOnly: flags['read-only'],
    readPage: () => readPageFiles('ui'),
    onOpened: () => {
      if (output.isTerminal) output.line(nextLinkLine(told, server.makeLink()));
    },
  });
  const told = { ...place, port: server.port };
  const origin = originOf(told);
  temporal.start();
  try {
    tell({ output, store, told, server, flags });
    await aborted(signal, signal);
  } finally {
    await server.close();
    // An index that is being made ends with the next group.
    await Promise.all([acting.close(), views.index.close(), feed.close(), temporal.close()]);
  }
}

interface Acting {
  readonly engines: Engines;
  readonly chat: UiChat;
}

/** Chats and their engines, which take 30 MB: they are loaded when one is first asked for. */
function actLater(options: EnginesOptions): { open(): Promise<Acting>; close(): Promise<void> } {
  let opened: Promise<Acting> | null = null;
  const load = async (): Promise<Acting> => {
    const [{ Engines: Own }, { createChat }] = await Promise.all([
      import('./chat/engines.ts'),
      import('./chat/chat.ts'),
    ]);
    const engines = new Own(options);
    return { engines, chat: createChat(options, engines) };
  };
  return { open: () => (opened ??= load()), close: async () => (await opened)?.engines.close() };
}

interface Told {
  readonly output: Output;
  readonly store: Store;
  readonly told: KeyedPlace;
  readonly server: UiServer;
  readonly flags: UiContext['flags'];
}

function tell({ output, store, told, server, flags }: Told): void {
  if (flags.json) return printJson(output, uiJson(told, store.uri));
  const link = output.isTerminal ? server.makeLink() : null;
  for (const line of uiLines(told, { store: store.uri, isReadOnly: flags['read-only'], link })) output.line(line);
}

function describeFailure(error: unknown): string {
  return `temper ui: the store could not be read (${(error as Error).message}); it is tried again`;
}

const BEARER = bearerWords(UI_KEY_VARIABLE);

type UiPlace = Pick<KeyedPlace, 'host' | 'port' | 'isNewKey'>;

interface Shown {
  readonly store: string;
  readonly isReadOnly: boolean;
  /** Path of a link; null without a terminal. */
  readonly link: string | null;
}

/** Lines that `temper ui` prints. Links are for a terminal alone: each of them opens the pages once. */
function uiLines(place: UiPlace, { store, isReadOnly, link }: Shown): string[] {
  const url = originOf(place);
  return [
    ...(link === null ? [`temper ui listens at ${url}; Ctrl-C stops it`] : [`open ${url}${link}`, '']),
    `store   ${store}${isReadOnly ? ', read-only' : ''}`,
    ...(link === null ? [] : ['link    works once; after that the next one is shown here. Ctrl-C stops the server']),
    ...(place.isNewKey
      ? [`key     scripts need one: set ${UI_KEY_VARIABLE}`]
      : [`key     in ${UI_KEY_VARIABLE}`, '', `curl ${url}/api/runs ${BEARER}`]),
    ...(link === null
      ? ['', 'for a browser, this makes a link that works once:', `curl ${url}/api/links ${BEARER} --json '{}'`]
      : []),
  ];
}

function nextLinkLine(place: UiPlace, link: string): string {
  return `opened; for another browser: ${originOf(place)}${link}`;
}

function uiJson(place: UiPlace, store: string): object {
  return { url: originOf(place), keyVariable: UI_KEY_VARIABLE, store };
}

/** With the key that opens it; null if no local stack runs. */
function localTemporalUi(project: string): string | null {
  const folders = projectFolders(project);
  const stack = readStackFile(folders.stackFile);
  const key = readOwnFile(folders.uiKey)?.trim();
  if (stack === null || stack.ports === null || !key || !isAlive({ ...stack, name: 'daemon' })) return null;
  return uiUrl(stack.ports.ui, key);
}
