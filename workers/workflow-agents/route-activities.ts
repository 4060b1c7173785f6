/**
 * Interceptors of a user's workflows, part of their bundle: a workflow that was started for an attempt sends the activities
 * that its header names where the header says, and so do its children and what it continues as. It imports nothing: the
 * bundle has one copy of Temporal's SDK, and it is the user's.
 */

const ROUTES_HEADER = 'temper';

interface Payload {
  readonly data?: Uint8Array | null;
}

type Headers = Readonly<Record<string, Payload>>;

interface Route {
  readonly activities: readonly string[];
  readonly options: object;
}

interface Sent {
  readonly headers: Headers;
}

interface ActivityInput extends Sent {
  readonly activityType: string;
  readonly options: object;
}

type Next<T, R> = (input: T) => R;

/** One object for each workflow. */
export function interceptors() {
  let own: Headers = {};
  let routes: readonly Route[] = [];
  const passOn = <T extends Sent, R>(input: T, next: Next<T, R>): R =>
    next({ ...input, headers: { ...input.headers, ...own } });
  return {
    inbound: [
      {
        execute<T extends Sent, R>(input: T, next: Next<T, R>): R {
          const payload = input.headers[ROUTES_HEADER];
          if (payload !== undefined) {
            own = { [ROUTES_HEADER]: payload };
            routes = readRoutes(payload);
          }
          return next(input);
        },
      },
    ],
    outbound: [
      {
        scheduleActivity<T extends ActivityInput, R>(input: T, next: Next<T, R>): R {
          const route = routes.find(({ activities }) => activities.includes(input.activityType));
          return next(route === undefined ? input : { ...input, options: { ...input.options, ...route.options } });
        },
        startChildWorkflowExecution: passOn,
        continueAsNew: passOn,
      },
    ],
  };
}

function readRoutes({ data }: Payload): readonly Route[] {
  const { routes } = JSON.parse(new TextDecoder().decode(data ?? new Uint8Array())) as { routes: readonly Route[] };
  return routes;
}
