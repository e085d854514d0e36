import type { FastifyInstance } from 'fastify'

/** Lets pages of any origin read the answers of a scope's routes: they are public and know no credential. */
export function openToAnyOrigin(app: FastifyInstance): void {
  app.addHook('onRequest', async (_request, reply) => {
    reply.header('access-control-allow-origin', '*')
  })
}
