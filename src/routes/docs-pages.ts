import type { FastifyRequest } from 'fastify'
import Type from 'typebox'
import { offeredApis } from '../catalog/catalog-state.ts'
import type { Context } from '../context.ts'
import { errorPage } from '../docs/error-page.ts'
import { docsFrame, docsHome } from '../docs/frame.ts'
import { loadGuides } from '../docs/guides.ts'
import { referencePage } from '../docs/reference-page.ts'
import { GatewayError } from '../errors.ts'
import type { Assets } from '../http/assets.ts'
import { PAGE_UNITS } from '../http/client-limits.ts'
import { type Html, html } from '../http/html.ts'
import { sendPage } from '../http/page-headers.ts'
import { NameParams } from '../http/path-ids.ts'
import type { App } from '../http/typed-app.ts'
import { layout } from '../portal/layout.ts'
import { readSessionCookie } from '../portal/session-cookie.ts'

const schema = { hide: true, response: { 200: { content: { 'text/html': { schema: Type.String() } } } } }
const madeEachTime = { config: { anonymousUnits: PAGE_UNITS }, schema }

/** The documentation as pages: overview, guides, reference, errors. Their Markdown is served by the routes of docs.ts. */
export async function docsPageRoutes(app: App, { catalog, config }: Context, assets: Assets): Promise<void> {
  const { baseUrl } = config.http
  const guides = loadGuides(config)

  const page = (request: FastifyRequest, title: string, main: Html): string => {
    const [path = ''] = request.url.split('?', 1)
    return layout(assets, {
      title: `${title} · Agent API Gateway`,
      description: `${title}: documentation of the Agent API Gateway.`,
      path,
      main: docsFrame(path, { guides, apis: offeredApis(catalog) }, main),
      signup: config.accounts.signup,
      isLoggedIn: readSessionCookie(request, baseUrl) !== undefined,
    })
  }

  app.get('/docs', madeEachTime, async (request, reply) =>
    sendPage(reply, page(request, 'Documentation', docsHome({ guides, apis: offeredApis(catalog) }))),
  )

  const errors = errorPage(baseUrl)
  app.get('/docs/errors', madeEachTime, async (request, reply) => sendPage(reply, page(request, 'Errors', errors)))

  // The document changes with the catalog alone: the page is written anew when the text is another one.
  let written: { source: string; main: Html } | undefined
  app.get('/docs/reference', madeEachTime, async (request, reply) => {
    const { body: source } = await app.inject('/openapi.json')
    if (written?.source !== source) written = { source, main: referencePage(JSON.parse(source), baseUrl) }
    return sendPage(reply, page(request, 'Reference', written.main))
  })

  app.get('/docs/guides', { schema: { hide: true } }, async (_request, reply) => reply.redirect('/docs', 308))

  const guidePage = { ...madeEachTime, schema: { ...schema, params: NameParams } }
  app.get('/docs/guides/:name', guidePage, async (request, reply) => {
    const guide = guides.find(({ name }) => name === request.params.name)
    if (!guide) throw new GatewayError('NOT_FOUND')
    const markdownAddress = `/docs/guides/${guide.name}.md`
    return sendPage(reply, page(request as FastifyRequest, guide.title, withMarkdownLink(guide.html, markdownAddress)))
  })
}

function withMarkdownLink(main: Html, address: string): Html {
  return html`${main}<p class="small"><a href="${address}">This guide as Markdown</a></p>`
}
