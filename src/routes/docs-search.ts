import type { FastifyReply, FastifyRequest } from 'fastify'
import Type, { type Static } from 'typebox'
import { offeredApis, perCatalogState } from '../catalog/catalog-state.ts'
import type { Context } from '../context.ts'
import { docsFrame } from '../docs/frame.ts'
import { loadGuides } from '../docs/guides.ts'
import { docsPlaces, searchDocs } from '../docs/search.ts'
import { QUERY_LENGTH_MAX, searchMarkdown, searchPage } from '../docs/search-page.ts'
import { openToAnyOrigin } from '../http/request/any-origin.ts'
import type { App } from '../http/request/typed-app.ts'
import { createDocument } from '../openapi/document.ts'
import type { DocumentedRoute } from '../openapi/route-list.ts'
import type { Assets } from '../pages/assets.ts'
import { sendPage } from '../pages/page-headers.ts'
import { layout } from '../portal/layout.ts'
import { readSessionCookie } from '../portal/session-cookie.ts'

const Query = Type.Object({
  q: Type.String({
    maxLength: QUERY_LENGTH_MAX,
    default: '',
    description: 'Words to search for: a task, an error code, a route, a parameter',
  }),
})
type QueryRequest = FastifyRequest<{ Querystring: Static<typeof Query> }>

/**
 * Units of a search. In the worst case, eight words are compared with all words of the
 * documentation that have the same first letter, and twenty results are written, which takes 5 ms.
 */
const SEARCH_UNITS = 10

/**
 * The search over guides, APIs, error codes and routes, as a page and in Markdown. The index is
 * built at the first search. Results are not cached, because the key would be a caller's text.
 * Therefore a search counts as several pages against the limit of the client address.
 */
export async function docsSearchRoutes(
  app: App,
  { catalog, config, settings }: Context,
  { assets, listRoutes }: { assets: Assets; listRoutes: () => DocumentedRoute[] },
): Promise<void> {
  const { baseUrl } = config.http
  const guides = loadGuides(config)
  const places = perCatalogState(catalog, () =>
    docsPlaces(guides, offeredApis(catalog), createDocument(listRoutes(), catalog, baseUrl)),
  )
  const units = { anonymousUnits: SEARCH_UNITS }
  const hidden = { hide: true, response: { 200: { content: { 'text/html': { schema: Type.String() } } } } }
  app.get('/docs/search', { config: units, schema: { ...hidden, querystring: Query } }, async (request, reply) => {
    const { q } = request.query
    const main = docsFrame(
      '/docs/search',
      { guides, apis: offeredApis(catalog), query: q },
      searchPage(q, searchDocs(places(), q)),
    )
    const page = layout(assets, {
      title: `Search${q.trim() === '' ? '' : `: ${q}`} · Agent API Gateway`,
      description: 'Search in the documentation of the Agent API Gateway.',
      path: '/docs/search',
      main,
      signup: config.accounts.signup,
      announcement: settings.notice?.text,
      isLoggedIn: readSessionCookie(request, baseUrl) !== undefined,
    })
    return sendPage(reply, page)
  })

  await app.register(async (scope) => {
    openToAnyOrigin(scope)
    const schema = {
      querystring: Query,
      summary: 'Search in guides, APIs, error codes and routes, in Markdown',
      tags: ['Documentation'],
      operationId: 'searchDocs',
      response: { 200: { content: { 'text/markdown': { schema: Type.String() } } } },
    }
    scope.get('/docs/search.md', { config: units, schema }, async (request: QueryRequest, reply: FastifyReply) => {
      const { q } = request.query
      reply.header('cache-control', 'public, max-age=60').header('x-content-type-options', 'nosniff')
      return reply.type('text/markdown; charset=utf-8').send(searchMarkdown(q, searchDocs(places(), q), baseUrl))
    })
  })
}
