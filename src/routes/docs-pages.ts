import type { FastifyRequest } from 'fastify'
import Type from 'typebox'
import { offeredApis, perCatalogState, stateOf } from '../catalog/catalog-state.ts'
import type { Context } from '../context.ts'
import { errorPage } from '../docs/error-page.ts'
import { docsFrame, docsHome } from '../docs/frame.ts'
import { loadGuides } from '../docs/guides.ts'
import { referencePage } from '../docs/reference-page.ts'
import { GatewayError } from '../errors.ts'
import { NameParams } from '../http/request/path-ids.ts'
import type { App } from '../http/request/typed-app.ts'
import { createDocument } from '../openapi/document.ts'
import type { DocumentedRoute } from '../openapi/route-list.ts'
import type { Assets } from '../pages/assets.ts'
import { type Html, html } from '../pages/html.ts'
import { sendPage } from '../pages/page-headers.ts'
import { Renderings } from '../pages/rendering.ts'
import { layout } from '../portal/layout.ts'
import { readSessionCookie } from '../portal/session-cookie.ts'

const schema = { hide: true, response: { 200: { content: { 'text/html': { schema: Type.String() } } } } }

/**
 * The documentation as pages: overview, guides, reference, errors. The routes of docs.ts serve
 * their Markdown.
 */
export async function docsPageRoutes(
  app: App,
  { catalog, config, settings }: Context,
  { assets, listRoutes }: { assets: Assets; listRoutes: () => DocumentedRoute[] },
): Promise<void> {
  const { baseUrl } = config.http
  const guides = loadGuides(config)
  const pages = new Renderings<Buffer>(() => `${stateOf(catalog)} ${settings.notice?.text}`)

  /**
   * The bytes of a page, which all readers share. `path` is the path of the route, never a caller's
   * text.
   */
  const page = (request: FastifyRequest, path: string, [title, main]: [string, () => Html]): Promise<Buffer> => {
    const isLoggedIn = readSessionCookie(request, baseUrl) !== undefined
    return pages.get(`${path} ${isLoggedIn}`, () =>
      Buffer.from(
        layout(assets, {
          title: `${title} · Agent API Gateway`,
          description: `${title}: documentation of the Agent API Gateway.`,
          path,
          main: docsFrame(path, { guides, apis: offeredApis(catalog) }, main()),
          signup: config.accounts.signup,
          announcement: settings.notice?.text,
          isLoggedIn,
        }),
      ),
    )
  }

  const errors = errorPage(baseUrl)
  const reference = perCatalogState(catalog, () =>
    referencePage(createDocument(listRoutes(), catalog, baseUrl), baseUrl),
  )
  const fixed: [path: string, title: string, main: () => Html][] = [
    ['/docs', 'Documentation', () => docsHome({ guides, apis: offeredApis(catalog) })],
    ['/docs/errors', 'Errors', () => errors],
    ['/docs/reference', 'Reference', reference],
  ]
  for (const [path, ...shown] of fixed)
    app.get(path, { schema }, async (request, reply) => sendPage(reply, await page(request, path, shown)))

  app.get('/docs/guides', { schema: { hide: true } }, async (_request, reply) => reply.redirect('/docs', 308))

  app.get('/docs/guides/:name', { schema: { ...schema, params: NameParams } }, async (request, reply) => {
    const guide = guides.find(({ name }) => name === request.params.name)
    if (!guide) throw new GatewayError('NOT_FOUND')
    const path = `/docs/guides/${guide.name}`
    const main = () => withMarkdownLink(guide.html, `${path}.md`)
    return sendPage(reply, await page(request as FastifyRequest, path, [guide.title, main]))
  })
}

function withMarkdownLink(main: Html, address: string): Html {
  return html`${main}<p class="small"><a href="${address}">This guide as Markdown</a></p>`
}
