/** Every endpoint of `temper review`. */
import { LINK_ROUTES } from './link-routes.ts';
import { REWARD_ROUTES } from './reward-routes.ts';
import type { Route } from './route.ts';
import { SESSION_ROUTES } from './session-routes.ts';

export const ROUTES: readonly Route[] = [...REWARD_ROUTES, ...LINK_ROUTES, ...SESSION_ROUTES];
