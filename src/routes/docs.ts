import type { FastifyInstance, FastifyReply } from 'fastify'
import Type from 'typebox'
import type { Api } from '../catalog/catalog.ts'
import { perCatalogState } from '../catalog/catalog-state.ts'
import type { Context } from '../context.ts'
import { apiMarkdown } from '../docs/api-markdown.ts'
import { errorPage } from '../docs/error-page.ts'
import { errorsMarkdown, llmsText } from '../docs/markdown.ts'
import { loadReferenceScript, REFERENCE_POLICY, REFERENCE_SCRIPT, referencePage } from '../docs/reference-page.ts'
import { GatewayError } from '../errors.ts'
import { type Cacheable, createCacheable, sendCacheable } from '../http/cacheable.ts'
import { sendPage } from '../http/page-headers.ts'
import type { Assets } from '../portal/assets.ts'
import { conditionOf } from '../portal/condition.ts'
import { layout } from '../portal/layout.ts'

const MARKDOWN = 'text/markdown; charset=utf-8'
const FRESH = 'public, max-age=60'
const HTML = { hide: true, response: { 200: { content: { 'text/html': { schema: Type.String() } } } } }

/** Documentation for people and for language models, all written from the catalog, the schemas and the error table. */
export async function docsRoutes(
  app: FastifyInstance,
  { catalog, config, health }: Context,
  assets: Assets,
): Promise<void> {
  const { baseUrl } = config.http

  const errors = layout(assets, {
    title: 'Errors · Agent API Gateway',
    description: 'Every error code: status, when, what to do.',
    path: '/docs/errors',
    main: errorPage(),
  })
  app.get('/docs', { schema: HTML }, async (_, reply) => sendPage(reply, referencePage(assets), REFERENCE_POLICY))
  app.get('/docs/errors', { schema: HTML }, async (_, reply) => sendPage(reply, errors))

  let script: Promise<Cacheable> | undefined
  app.get(REFERENCE_SCRIPT, { schema: { hide: true } }, async (request, reply) => {
    script ??= loadReferenceScript()
    return await sendCacheable(request, reply, await script, 'public, max-age=3600')
  })

  const llms = perCatalogState(catalog, () => createCacheable(llmsText(catalog, baseUrl), 'text/plain; charset=utf-8'))
  const llmsSchema = {
    summary: 'The catalog for language models',
    tags: ['Documentation'],
    operationId: 'getLlmsText',
    response: { 200: { content: { 'text/plain': { schema: Type.String() } } } },
  }
  app.get('/llms.txt', { schema: llmsSchema }, async (request, reply: FastifyReply) =>
    sendCacheable(request, reply, llms(), FRESH),
  )

  const errorTable = createCacheable(errorsMarkdown(), MARKDOWN)
  const errorsSchema = {
    summary: 'Every error code, in Markdown',
    tags: ['Documentation'],
    operationId: 'getErrorsMarkdown',
    response: { 200: { content: { 'text/markdown': { schema: Type.String() } } } },
  }
  app.get('/docs/errors.md', { schema: errorsSchema }, async (request, reply: FastifyReply) =>
    sendCacheable(request, reply, errorTable, FRESH),
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
    summary: 'One API, in Markdown',
    tags: ['Documentation'],
    operationId: 'getApiMarkdown',
    response: { 200: { content: { 'text/markdown': { schema: Type.String() } } } },
  }
  const twin = { config: { errors: ['API_NOT_FOUND'] as const }, schema: twinSchema }
  app.get<{ Params: { slug: string } }>('/docs/apis/:slug.md', twin, async (request, reply: FastifyReply) => {
    const api = catalog.get(request.params.slug)
    if (!api || api.isSwitchedOff) throw new GatewayError('API_NOT_FOUND')
    return await sendCacheable(request, reply, twinOf(api), FRESH)
  })
}
