/** Variable with the key of `temper ui`. No worker has it, so that no agent can act on runs. */
export const UI_KEY_VARIABLE = 'TEMPER_UI_KEY';
