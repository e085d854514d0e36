import { GatewayError } from '../../errors.ts'
import type { App } from './typed-app.ts'

/**
 * Control characters that no parameter needs, lone surrogates, and the two code points that are
 * never characters.
 */
const ILL_FORMED = /[\0\ufffe\uffff]/

/** Whether a text may be stored and sent on: well-formed Unicode without NUL. */
export function isWellFormed(text: string): boolean {
  return !ILL_FORMED.test(text) && text.isWellFormed()
}

/**
 * The routes of a scope refuse ill-formed text in their query. If NUL reached Postgres, its refusal
 * would be a failure of ours.
 */
export function refuseIllFormedQueries(scope: App): void {
  scope.addHook('preValidation', async ({ query }) => {
    const values = Object.values(query as Record<string, string | string[]>).flat()
    if (!values.every(isWellFormed)) throw new GatewayError('INVALID_ENCODING')
  })
}
