/** Every endpoint of `temper review`. */
import { COMPARISON_ROUTES } from './comparison-routes.ts';
import { LINK_ROUTES } from './link-routes.ts';
import { REVIEWER_ROUTES } from './reviewer-routes.ts';
import { REWARD_ROUTES } from './reward-routes.ts';
import type { Route } from './route.ts';

export const ROUTES: readonly Route[] = [...REWARD_ROUTES, ...COMPARISON_ROUTES, ...LINK_ROUTES, ...REVIEWER_ROUTES];
