import { GatewayError } from '../../errors.ts'
import { isDecodable } from './decodable.ts'
import type { App } from './typed-app.ts'

/** NUL, and two code points that are never characters. `isWellFormed` finds lone surrogates. */
const ILL_FORMED = /[\0\ufffe\uffff]/

/** Whether a text may be stored and forwarded: it is well-formed Unicode without NUL. */
export function isWellFormed(text: string): boolean {
  return !ILL_FORMED.test(text) && text.isWellFormed()
}

/**
 * Makes the routes of a scope refuse ill-formed text in their query. If a NUL reached Postgres, its
 * error would be reported as a failure of the gateway. Fastify leaves a value as it is if it cannot
 * decode it, and the route would then look for a text that nobody meant.
 */
export function refuseIllFormedQueries(scope: App): void {
  scope.addHook('preValidation', async ({ query, url }) => {
    const values = Object.values(query as Record<string, string | string[]>).flat()
    if (!values.every(isWellFormed) || !isDecodable(url.replace(/^[^?]*/, '')))
      throw new GatewayError('INVALID_ENCODING')
  })
}
