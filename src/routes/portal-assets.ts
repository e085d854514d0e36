import { offeredApis, perCatalogState } from '../catalog/catalog-state.ts'
import type { Context } from '../context.ts'
import { GatewayError } from '../errors.ts'
import { createCacheable, sendCacheable } from '../http/answer/cacheable.ts'
import type { App } from '../http/request/typed-app.ts'
import { type Assets, serveAssets } from '../pages/assets.ts'

const FOR_A_DAY = 'public, max-age=86400'

/** The portal's files, and files that browsers and search engines expect. */
export async function portalAssetRoutes(app: App, { catalog, config }: Context, assets: Assets): Promise<void> {
  const schema = { hide: true }
  // Agents' clients store its address, so the address contains no hash.
  app.get('/icon-64.png', { schema }, async (_request, reply) => {
    const file = assets.files.get('portal/assets/icon-64.png')
    if (!file) throw new GatewayError('NOT_FOUND')
    return await sendCacheable(reply, file, FOR_A_DAY)
  })
  serveAssets(app, assets, 'public')

  const icon = assets.files.get('portal/assets/icon.svg')
  app.get('/favicon.ico', { schema }, async (_request, reply) => {
    if (!icon) throw new GatewayError('NOT_FOUND')
    return await sendCacheable(reply, icon, FOR_A_DAY)
  })

  // Search engines do not need accounts and forms. They may index everything else.
  const robots = createCacheable(
    ['User-agent: *', 'Disallow: /account', 'Disallow: /v1/', `Sitemap: ${config.http.baseUrl}/sitemap.txt`, ''].join(
      '\n',
    ),
    'text/plain; charset=utf-8',
  )
  app.get('/robots.txt', { schema }, async (_request, reply) => sendCacheable(reply, robots, FOR_A_DAY))

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
  app.get('/sitemap.txt', { schema }, async (_request, reply) => sendCacheable(reply, sitemap(), FOR_A_DAY))
}
