import type { FastifyInstance } from 'fastify'

/**
 * Lets the routes of a scope take what a form of a page sends without a script: members with texts.
 */
export function takeForms(app: FastifyInstance): void {
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string' },
    async (_: unknown, body: string) => Object.fromEntries(new URLSearchParams(body)),
  )
}
