import type { FastifyReply, FastifyRequest } from 'fastify'
import Type, { type Static } from 'typebox'
import type { Api } from '../catalog/catalog.ts'
import { perCatalogState } from '../catalog/catalog-state.ts'
import type { Context } from '../context.ts'
import { apiMarkdown } from '../docs/api-markdown.ts'
import { loadGuides } from '../docs/guides.ts'
import { errorsMarkdown, llmsText } from '../docs/markdown.ts'
import { GatewayError } from '../errors.ts'
import { openToAnyOrigin } from '../http/any-origin.ts'
import { type Cacheable, createCacheable, sendCacheable } from '../http/cacheable.ts'
import { NameParams, SlugParams } from '../http/path-ids.ts'
import type { App } from '../http/typed-app.ts'
import { conditionOf } from '../portal/condition.ts'

const MARKDOWN = 'text/markdown; charset=utf-8'
const FRESH = 'public, max-age=60'

/** Documentation in Markdown, for language models and for reading: the catalog, each API, the errors, the guides. */
export async function docsRoutes(app: App, { catalog, config, health }: Context): Promise<void> {
  const { baseUrl } = config.http
  openToAnyOrigin(app)

  const guides = loadGuides(config)
  const llms = perCatalogState(catalog, () =>
    createCacheable(llmsText(catalog, baseUrl, guides), 'text/plain; charset=utf-8'),
  )
  const llmsSchema = {
    summary: 'The catalog for language models',
    tags: ['Documentation'],
    operationId: 'getLlmsText',
    response: { 200: { content: { 'text/plain': { schema: Type.String() } } } },
  }
  app.get('/llms.txt', { schema: llmsSchema }, async (_request, reply: FastifyReply) =>
    sendCacheable(reply, llms(), FRESH),
  )

  const errorTable = createCacheable(errorsMarkdown(), MARKDOWN)
  const errorsSchema = {
    summary: 'Every error code, in Markdown',
    tags: ['Documentation'],
    operationId: 'getErrorsMarkdown',
    response: { 200: { content: { 'text/markdown': { schema: Type.String() } } } },
  }
  app.get('/docs/errors.md', { schema: errorsSchema }, async (_request, reply: FastifyReply) =>
    sendCacheable(reply, errorTable, FRESH),
  )

  // Written anew when the text changes: with the catalog, or with the state of the API.
  const twins = new Map<string, { text: string; file: Cacheable }>()
  const twinOf = (api: Api): Cacheable => {
    const text = apiMarkdown(api, baseUrl, conditionOf(api, health.of(api.slug)))
    const known = twins.get(api.slug)
    if (known?.text === text) return known.file
    const file = createCacheable(text, MARKDOWN)
    twins.set(api.slug, { text, file })
    return file
  }
  const twinSchema = {
    params: SlugParams,
    summary: 'One API, in Markdown',
    tags: ['Documentation'],
    operationId: 'getApiMarkdown',
    response: { 200: { content: { 'text/markdown': { schema: Type.String() } } } },
  }
  const twin = { config: { errors: ['API_NOT_FOUND'] as const }, schema: twinSchema }
  app.get(
    '/docs/apis/:slug.md',
    twin,
    async (request: FastifyRequest<{ Params: Static<typeof SlugParams> }>, reply: FastifyReply) => {
      const api = catalog.get(request.params.slug)
      if (!api || api.isSwitchedOff) throw new GatewayError('API_NOT_FOUND')
      return await sendCacheable(reply, twinOf(api), FRESH)
    },
  )

  const guideFiles = new Map(guides.map(({ name, markdown }) => [name, createCacheable(markdown, MARKDOWN)]))
  const guideSchema = {
    ...twinSchema,
    params: NameParams,
    summary: 'One guide, in Markdown',
    operationId: 'getGuideMarkdown',
  }
  const guide = { config: { errors: ['NOT_FOUND'] as const }, schema: guideSchema }
  app.get(
    '/docs/guides/:name.md',
    guide,
    async (request: FastifyRequest<{ Params: Static<typeof NameParams> }>, reply: FastifyReply) => {
      const file = guideFiles.get(request.params.name)
      if (!file) throw new GatewayError('NOT_FOUND')
      return await sendCacheable(reply, file, FRESH)
    },
  )
}
