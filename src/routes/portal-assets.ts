import type { FastifyInstance } from 'fastify'
import { offeredApis, perCatalogState } from '../catalog/catalog-state.ts'
import type { Context } from '../context.ts'
import { GatewayError } from '../errors.ts'
import { createCacheable, sendCacheable } from '../http/cacheable.ts'
import type { Assets } from '../portal/assets.ts'

/** A file whose address names its content never changes (RFC 8246). */
const FOREVER = 'public, max-age=31536000, immutable'

const FOR_A_DAY = 'public, max-age=86400'

/** The portal's files, and what browsers and search engines look for. Only what was read at the start is served: no address reaches the file system. */
export async function portalAssetRoutes(
  app: FastifyInstance,
  { catalog, config }: Context,
  assets: Assets,
): Promise<void> {
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

  const icon = assets.files.get('icon.svg')
  app.get('/favicon.ico', { schema }, async (request, reply) => {
    if (!icon) throw new GatewayError('NOT_FOUND')
    return await sendCacheable(request, reply, icon, FOR_A_DAY)
  })

  // Accounts and forms are of no use to search engines; everything else may be found.
  const robots = createCacheable(
    ['User-agent: *', 'Disallow: /account', 'Disallow: /v1/', `Sitemap: ${config.http.baseUrl}/sitemap.txt`, ''].join(
      '\n',
    ),
    'text/plain; charset=utf-8',
  )
  app.get('/robots.txt', { schema }, async (request, reply) => sendCacheable(request, reply, robots, FOR_A_DAY))

  const sitemap = perCatalogState(catalog, () => {
    const paths = [
      '/',
      '/agents',
      '/docs',
      '/docs/reference',
      '/docs/errors',
      ...offeredApis(catalog).map(({ slug }) => `/apis/${slug}`),
    ]
    return createCacheable(paths.map((path) => `${config.http.baseUrl}${path}\n`).join(''), 'text/plain; charset=utf-8')
  })
  app.get('/sitemap.txt', { schema }, async (request, reply) => sendCacheable(request, reply, sitemap(), FOR_A_DAY))
}
