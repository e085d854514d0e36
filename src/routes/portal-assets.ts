import type { FastifyInstance } from 'fastify'
import type { Context } from '../context.ts'
import { GatewayError } from '../errors.ts'
import { sendCacheable } from '../http/cacheable.ts'
import type { Assets } from '../portal/assets.ts'

/** A file whose address names its content never changes (RFC 8246). */
const FOREVER = 'public, max-age=31536000, immutable'

/** The portal's files. Only what was read at the start is served: no address reaches the file system. */
export async function portalAssetRoutes(app: FastifyInstance, _context: Context, assets: Assets): Promise<void> {
  const schema = { hide: true }
  // Agents' clients keep its address, so it names no content.
  app.get('/icon-64.png', { schema }, async (request, reply) => {
    const file = assets.files.get('icon-64.png')
    if (!file) throw new GatewayError('NOT_FOUND')
    return await sendCacheable(request, reply, file, 'public, max-age=86400')
  })
  app.get<{ Params: { version: string; name: string } }>(
    '/assets/:version/:name',
    { schema },
    async (request, reply) => {
      const { version, name } = request.params
      const file = assets.files.get(name)
      if (!file) throw new GatewayError('NOT_FOUND')
      // While nodes of two versions run, a page of one may ask the other: it gets the file, but does not keep it.
      return await sendCacheable(request, reply, file, version === assets.version ? FOREVER : 'no-cache')
    },
  )
}
