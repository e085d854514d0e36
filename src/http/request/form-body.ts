import type { FastifyInstance } from 'fastify'

/** Lets the routes of a scope accept the body of an HTML form that is sent without a script. */
export function takeForms(app: FastifyInstance): void {
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string' },
    async (_: unknown, body: string) => Object.fromEntries(new URLSearchParams(body)),
  )
}
