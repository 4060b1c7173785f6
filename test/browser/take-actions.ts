/** Answers of the server to actions as typed literals: what it does with them is tested in `test/cli/ui/`. */
import type { Page, Route } from 'playwright-core';
import type { ActionRequest, ActionResult, Made, ServerInfo } from '../../views/api/requests.ts';

export const json = (route: Route, body: object, status = 200): Promise<void> =>
  route.fulfill({ status, contentType: 'application/json', body: JSON.stringify(body) });

/** A Temporal server answers; actions are answered by `answer`, and kept. */
export async function takeActions(page: Page, answer: (request: ActionRequest) => ActionResult | string) {
  const taken: ActionRequest[] = [];
  await page.route('**/api/info', async (route) => {
    const info = (await (await route.fetch()).json()) as ServerInfo;
    await json(route, { ...info, hasTemporal: true });
  });
  await page.route('**/api/actions', async (route) => {
    const request = route.request().postDataJSON() as ActionRequest;
    taken.push(request);
    const result = answer(request);
    if (typeof result === 'string') await json(route, { error: { message: result, code: null } }, 422);
    else await json(route, result);
  });
  return taken;
}

export const result = (request: ActionRequest, says: string, made?: Made): ActionResult => ({
  says,
  isDone: request.isConfirmed,
  command: 'temper rollback demo --step 2',
  result: request.isConfirmed ? { ...(made && { made }) } : null,
});
