/** How much of a run its state keeps for people. The rest stands in the store. */

/** The newest. */
export const KEPT_NOTES = 50;
/** The first and the newest: of a run's workflow the newest alone. */
export const KEPT_EVALS = 200;
