import { AsyncLocalStorage } from 'node:async_hooks'
import type { TokenUse } from '../db/oauth-artifacts.ts'

const requests = new AsyncLocalStorage<{ use?: TokenUse }>()

/** Runs what serves one request: the access token that it stores comes of the refresh token that it uses. */
export function withTokenUse<T>(serve: () => Promise<T>): Promise<T> {
  return requests.run({}, serve)
}

/** @throws Error outside of a request: the use could never count */
export function noteTokenUse(use: TokenUse): void {
  const request = requests.getStore()
  if (!request) throw new Error('a refresh token is used by no request')
  request.use = use
}

/** The use that the request makes; undefined where it uses no refresh token. */
export function currentTokenUse(): TokenUse | undefined {
  return requests.getStore()?.use
}
