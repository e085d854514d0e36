import { AsyncLocalStorage } from 'node:async_hooks'

const requests = new AsyncLocalStorage<{ usedHash?: Buffer }>()

/**
 * Runs the work of one request. Tokens that the request stores are successors of the refresh token
 * that it uses.
 */
export function withTokenUse<T>(serve: () => Promise<T>): Promise<T> {
  return requests.run({}, serve)
}

/** @throws Error outside of a request, because the use would never be recorded */
export function noteTokenUse(usedHash: Buffer): void {
  const request = requests.getStore()
  if (!request) throw new Error('a refresh token is used by no request')
  request.usedHash = usedHash
}

/** Hash of the refresh token that the request uses; undefined if it uses none. */
export function currentTokenUse(): Buffer | undefined {
  return requests.getStore()?.usedHash
}
