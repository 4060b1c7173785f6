/** In the place of the network, from before any client is made: requests that no attempt has answered. */
export const leaked: string[] = [];

globalThis.fetch = (input) => {
  leaked.push(String(input instanceof Request ? input.url : input));
  return Promise.reject(new TypeError('this test has no network'));
};
