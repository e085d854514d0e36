import type { FastifyInstance } from 'fastify'
import { GatewayError } from '../../errors.ts'
import { isWellFormed } from './well-formed.ts'

/**
 * Lets the routes of a scope accept the body of an HTML form that is sent without a script. It
 * refuses ill-formed text, as JSON bodies do: nobody could log in with a password that has a NUL.
 */
export function takeForms(app: FastifyInstance): void {
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string' },
    async (_: unknown, body: string) => {
      const form = Object.fromEntries(new URLSearchParams(body))
      if (!Object.values(form).every(isWellFormed)) throw new GatewayError('INVALID_ENCODING')
      return form
    },
  )
}
