import type { FastifyInstance, FastifyRequest } from 'fastify'
import Type from 'typebox'
import type { Catalog } from '../catalog/catalog.ts'
import type { Context } from '../context.ts'
import { GatewayError } from '../errors.ts'
import type { Html } from '../http/html.ts'
import { sendPage } from '../http/page-headers.ts'
import type { Assets } from '../portal/assets.ts'
import { readCatalog } from '../portal/catalog-view.ts'
import { layout } from '../portal/layout.ts'
import { type AccountSection, accountPage, credentialsPage } from '../portal/pages/account.ts'
import { agentsPage } from '../portal/pages/agents.ts'
import { apiPage } from '../portal/pages/api.ts'
import { homePage } from '../portal/pages/home.ts'
import { readSessionCookie } from '../portal/session-cookie.ts'

const schema = { hide: true, response: { 200: { content: { 'text/html': { schema: Type.String() } } } } }

/** The portal's pages. What they hold of the service they read from its own public routes. */
export async function portalRoutes(app: FastifyInstance, { catalog, config }: Context, assets: Assets): Promise<void> {
  const { baseUrl } = config.http

  const page = (request: FastifyRequest, title: string, main: Html, description = title): string =>
    layout(assets, {
      title: title === '' ? 'Agent API Gateway' : `${title} · Agent API Gateway`,
      description,
      path: request.url.split('?', 1)[0] ?? '/',
      main,
      isLoggedIn: readSessionCookie(request, baseUrl) !== undefined,
    })

  app.get('/', { schema }, async (request, reply) => {
    const main = homePage(catalog, await readCatalog(app), baseUrl)
    return sendPage(reply, page(request, '', main, 'One HTTP layer over many public data APIs, for people and agents.'))
  })

  app.get<{ Params: { slug: string } }>('/apis/:slug', { schema }, async (request, reply) => {
    const api = catalog.get(request.params.slug)
    const state = (await readCatalog(app)).get(request.params.slug)
    if (!api || !state) throw new GatewayError('API_NOT_FOUND')
    const { displayName, description } = api.upstream
    return sendPage(reply, page(request as FastifyRequest, displayName, apiPage(api, state, baseUrl), description))
  })

  const still: [path: string, title: string, main: Html][] = [
    ['/agents', 'For agents', agentsPage(baseUrl)],
    ['/signup', 'Sign up', credentialsPage('signup')],
    ['/login', 'Log in', credentialsPage('login')],
    ...(['overview', 'keys', 'teams', 'provider-keys'] as AccountSection[]).map((section): [string, string, Html] => [
      section === 'overview' ? '/account' : `/account/${section}`,
      'Account',
      accountPage(section, section === 'provider-keys' ? JSON.stringify(apisTakingKeys(catalog)) : ''),
    ]),
  ]
  for (const [path, title, main] of still) {
    app.get(path, { schema }, async (request, reply) => sendPage(reply, page(request, title, main)))
  }
}

/** Slug and name of the APIs that take a caller's own key. */
function apisTakingKeys(catalog: Catalog): [string, string][] {
  const taking = [...catalog.values()].filter(({ upstream: { credential } }) =>
    /^byok/.test(credential?.accessMode ?? ''),
  )
  return taking.map(({ slug, upstream }) => [slug, upstream.displayName])
}
