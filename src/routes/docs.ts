import { readFileSync } from 'node:fs'
import type { FastifyReply, FastifyRequest } from 'fastify'
import Type, { type Static } from 'typebox'
import type { Api } from '../catalog/catalog.ts'
import { offeredApis, perCatalogState } from '../catalog/catalog-state.ts'
import { apiNotFound } from '../catalog/unknown-api.ts'
import type { Context } from '../context.ts'
import { apiMarkdown } from '../docs/api-markdown.ts'
import { type Guide, loadGuides } from '../docs/guides.ts'
import { errorsMarkdown, llmsText } from '../docs/markdown.ts'
import { GatewayError } from '../errors.ts'
import { type Cacheable, createCacheable, sendCacheable } from '../http/answer/cacheable.ts'
import { openToAnyOrigin } from '../http/request/any-origin.ts'
import { NameParams, SlugParams } from '../http/request/path-ids.ts'
import type { App } from '../http/request/typed-app.ts'
import { conditionOf } from '../portal/condition.ts'

const MARKDOWN = 'text/markdown; charset=utf-8'
const FRESH = 'public, max-age=60'

/**
 * Documentation in Markdown, for language models and people: the catalog, each API, the errors, the
 * guides.
 */
export async function docsRoutes(app: App, context: Context): Promise<void> {
  openToAnyOrigin(app)
  const guides = loadGuides(context.config)
  routeCatalog(app, context, guides)
  routeErrors(app)
  routeApis(app, context)
  routeGuides(app, guides)
  routePictures(app)
}

const markdownAnswer = { 200: { content: { 'text/markdown': { schema: Type.String() } } } }

function routeCatalog(app: App, { catalog, config }: Context, guides: Guide[]): void {
  const llms = perCatalogState(catalog, () =>
    createCacheable(llmsText(catalog, config.http.baseUrl, guides), 'text/plain; charset=utf-8'),
  )
  const schema = {
    summary: 'The catalog for language models',
    tags: ['Documentation'],
    operationId: 'getLlmsText',
    response: { 200: { content: { 'text/plain': { schema: Type.String() } } } },
  }
  app.get('/llms.txt', { schema }, async (_request, reply: FastifyReply) => sendCacheable(reply, llms(), FRESH))
}

function routeErrors(app: App): void {
  const table = createCacheable(errorsMarkdown(), MARKDOWN)
  const schema = {
    summary: 'Every error code, in Markdown',
    tags: ['Documentation'],
    operationId: 'getErrorsMarkdown',
    response: markdownAnswer,
  }
  app.get('/docs/errors.md', { schema }, async (_request, reply: FastifyReply) => sendCacheable(reply, table, FRESH))
}

function routeApis(app: App, { catalog, config, health }: Context): void {
  // Written again when the catalog or the state of the API changes.
  const files = new Map<string, { text: string; file: Cacheable }>()
  const fileOf = (api: Api): Cacheable => {
    const text = apiMarkdown(api, config.http.baseUrl, conditionOf(api, health.of(api.slug)))
    const known = files.get(api.slug)
    if (known?.text === text) return known.file
    const file = createCacheable(text, MARKDOWN)
    files.set(api.slug, { text, file })
    return file
  }
  const schema = {
    params: SlugParams,
    summary: 'One API, in Markdown',
    tags: ['Documentation'],
    operationId: 'getApiMarkdown',
    response: markdownAnswer,
  }
  app.get(
    '/docs/apis/:slug.md',
    { config: { errors: ['API_NOT_FOUND'] as const }, schema },
    async (request: FastifyRequest<{ Params: Static<typeof SlugParams> }>, reply: FastifyReply) => {
      const api = catalog.get(request.params.slug)
      if (!api || api.isSwitchedOff) throw apiNotFound(offeredApis(catalog), request.params.slug)
      return await sendCacheable(reply, fileOf(api), FRESH)
    },
  )
}

function routeGuides(app: App, guides: Guide[]): void {
  const files = new Map(guides.map(({ name, markdown }) => [name, createCacheable(markdown, MARKDOWN)]))
  const schema = {
    params: NameParams,
    summary: 'One guide, in Markdown',
    tags: ['Documentation'],
    operationId: 'getGuideMarkdown',
    response: markdownAnswer,
  }
  app.get(
    '/docs/guides/:name.md',
    { config: { errors: ['NOT_FOUND'] as const }, schema },
    async (request: FastifyRequest<{ Params: Static<typeof NameParams> }>, reply: FastifyReply) => {
      const file = files.get(request.params.name)
      if (!file) throw new GatewayError('NOT_FOUND')
      return await sendCacheable(reply, file, FRESH)
    },
  )
}

/** The pictures of the guides. */
function routePictures(app: App): void {
  for (const name of ['limits', 'asynchronous-call']) {
    const source = readFileSync(new URL(`../docs/pictures/${name}.svg`, import.meta.url))
    const picture = createCacheable(source, 'image/svg+xml; charset=utf-8')
    app.get(`/docs/pictures/${name}.svg`, { schema: { hide: true } }, async (_request, reply: FastifyReply) =>
      sendCacheable(reply, picture, FRESH),
    )
  }
}
