import type { FastifyRequest } from 'fastify'
import Type from 'typebox'
import type { Catalog } from '../catalog/catalog.ts'
import { offeredApis } from '../catalog/catalog-state.ts'
import { firstExampleCall } from '../catalog/example-call.ts'
import type { Config } from '../config.ts'
import type { Context } from '../context.ts'
import { GatewayError } from '../errors.ts'
import { LastDayReader, latencyOf } from '../fleet/last-hour.ts'
import { publicStateOf } from '../health/public-state.ts'
import { SlugParams } from '../http/request/path-ids.ts'
import type { App } from '../http/request/typed-app.ts'
import type { Assets } from '../pages/assets.ts'
import type { Html } from '../pages/html.ts'
import { sendPage } from '../pages/page-headers.ts'
import { Renderings } from '../pages/rendering.ts'
import { readHealthPast, type Visit } from '../portal/catalog-view.ts'
import { conditionOf } from '../portal/condition.ts'
import { layout } from '../portal/layout.ts'
import { accountPage, credentialsPage, plansCard, signupClosedPage } from '../portal/pages/account.ts'
import { agentsPage } from '../portal/pages/agents.ts'
import { apiPage } from '../portal/pages/api.ts'
import type { LatencyOfDay } from '../portal/pages/api-latency.ts'
import { connectPage } from '../portal/pages/connect.ts'
import { homePage } from '../portal/pages/home.ts'
import { readSessionCookie } from '../portal/session-cookie.ts'
import { QUARTER_MS } from '../telemetry/minute-stats.ts'
import { PAGE_UNITS } from '../throttles/client-limits.ts'

/** Shown while Redis is away. */
const UNAVAILABLE =
  'The gateway cannot serve calls at the moment: they get 503 DEPENDENCY_UNAVAILABLE. Health shown here may be out of date. Your account and its keys are not affected.'

const schema = { hide: true, response: { 200: { content: { 'text/html': { schema: Type.String() } } } } }

const Text = (maxLength: number) => Type.String({ maxLength, default: '' })

/**
 * Link headers with which programs that open the home page find the descriptions of the service
 * (RFC 8288, RFC 9727).
 */
const DESCRIPTIONS = [
  '</.well-known/api-catalog>; rel="api-catalog"',
  '</openapi.json>; rel="service-desc"',
  '</llms.txt>; rel="describedby"',
].join(', ')

/** Filters of the home page. Unknown categories and states match nothing. */
const Filter = Type.Object({ q: Text(200), category: Text(60), health: Text(20) })

interface PageWords {
  title: string
  /** Default: the title of the page. */
  description?: string
}

/**
 * The portal's pages. They read the state of the service from the catalog and its public routes.
 */
export async function portalRoutes(
  app: App,
  { catalog, config, clock, health, redis, settings }: Context,
  assets: Assets,
): Promise<void> {
  const { baseUrl } = config.http
  const pages = new Renderings<Buffer>(() => `${publicStateOf(catalog, health)} ${settings.notice?.text}`)
  const day = new LastDayReader(redis)

  const visitOf = (request: FastifyRequest): Visit => ({
    baseUrl,
    isLoggedIn: readSessionCookie(request, baseUrl) !== undefined,
    plans: config.plans,
    signup: config.accounts.signup,
  })

  /** A page that is the same for all visitors, except for the parts that a log-in changes. */
  const sharedPage = (request: FastifyRequest, name: string, render: () => string | Promise<string>): Promise<Buffer> =>
    pages.get(`${name} ${visitOf(request).isLoggedIn}`, async () => Buffer.from(await render()))
  const page = (request: FastifyRequest, main: Html, { title, description = title }: PageWords): string =>
    layout(assets, {
      title: title === '' ? 'Agent API Gateway' : `${title} · Agent API Gateway`,
      description,
      path: request.url.split('?', 1)[0] ?? '/',
      main,
      signup: config.accounts.signup,
      notice: health.isStale ? UNAVAILABLE : '',
      announcement: settings.notice?.text,
      isLoggedIn: visitOf(request).isLoggedIn,
    })

  const filtered = { config: { anonymousUnits: PAGE_UNITS }, schema: { ...schema, querystring: Filter } }
  app.get('/', filtered, async (request, reply) => {
    const render = () => {
      const items = offeredApis(catalog).map((api) => ({ api, condition: conditionOf(api, health.of(api.slug)) }))
      const main = homePage(items, request.query, visitOf(request as FastifyRequest))
      const description = 'One HTTP layer over many public data APIs, for people and agents.'
      return page(request as FastifyRequest, main, { title: '', description })
    }
    reply.header('link', DESCRIPTIONS)
    const isFiltered = Object.values(request.query).some((value) => value !== '')
    return sendPage(reply, isFiltered ? render() : await sharedPage(request as FastifyRequest, 'home', render))
  })

  // The address of an API's page without its last part leads to the catalog.
  app.get('/apis', { schema: { hide: true } }, async (_request, reply) => reply.redirect('/', 308))

  app.get('/apis/:slug', { schema: { ...schema, params: SlugParams } }, async (request, reply) => {
    const { slug } = request.params
    const api = catalog.get(slug)
    if (!api || api.isSwitchedOff) throw new GatewayError('API_NOT_FOUND')
    const render = async () => {
      const condition = conditionOf(api, health.of(slug))
      const [past, latency] = await Promise.all([readHealthPast(app, slug), latencyOfDay(day, slug, clock.now())])
      const main = apiPage({ api, condition, past, latency }, visitOf(request as FastifyRequest))
      const { displayName, description } = api.upstream
      return page(request as FastifyRequest, main, { title: displayName, description })
    }
    return sendPage(
      reply,
      await sharedPage(request as FastifyRequest, `api ${slug} ${Math.floor(clock.now() / QUARTER_MS)}`, render),
    )
  })

  for (const [path, title, write] of fixedPages(catalog, config)) {
    app.get(path, { schema }, async (request, reply) =>
      sendPage(reply, await sharedPage(request, path, () => page(request, write(), { title }))),
    )
  }
}

/** Fails open: without data, the page has no chart. */
async function latencyOfDay(day: LastDayReader, slug: string, now: number): Promise<LatencyOfDay | undefined> {
  return await day.read(now).then(
    (quarters) => latencyOf(quarters, slug),
    () => undefined,
  )
}

type FixedPage = [path: string, title: string, write: () => Html]

/**
 * Addresses of pages without an API. Pages that name APIs are rendered again when operators change
 * APIs.
 */
function fixedPages(catalog: Catalog, { accounts, http, plans, upstreams }: Config): FixedPage[] {
  const { operatorContact } = upstreams
  const { signup } = accounts
  const provesAddresses = accounts.smtpUrl !== undefined
  const provider = accounts.oidc?.name
  const consent: FixedPage = [
    '/connect/:uid',
    'Connect an application',
    () => connectPage(signup !== 'closed', provider),
  ]
  return [
    ['/agents', 'For agents', () => agentsPage({ baseUrl: http.baseUrl, isOauthOn: accounts.isOauthOn })],
    [
      '/signup',
      'Sign up',
      () =>
        signup === 'closed'
          ? signupClosedPage(operatorContact, provider)
          : credentialsPage('signup', { start: firstPage(catalog), signup, mails: provesAddresses, provider }),
    ],
    [
      '/login',
      'Log in',
      () => credentialsPage('login', { start: '/account', signup, mails: provesAddresses, provider }),
    ],
    [
      '/account',
      'Account',
      () => accountPage('overview', { provesAddresses, below: plansCard(plans, operatorContact) }),
    ],
    ['/account/keys', 'API keys', () => accountPage('keys', { start: firstPage(catalog) })],
    ['/account/calls', 'Calls', () => accountPage('calls')],
    ['/account/calls/:id', 'Call', () => accountPage('calls', { part: { view: 'call', title: 'Call' } })],
    ['/account/teams', 'Teams', () => accountPage('teams', { start: firstPage(catalog), provesAddresses })],
    [
      '/account/provider-keys',
      'Provider keys',
      () => accountPage('provider-keys', { apis: JSON.stringify(apisTakingKeys(catalog)) }),
    ],
    ['/account/connections', 'Connected apps', () => accountPage('connections')],
    ['/account/settings', 'Settings', () => accountPage('settings', { provesAddresses })],
    // The browser comes from another site and sends no cookie, so the page's script finds out who
    // is logged in.
    ...(accounts.isOauthOn ? [consent] : []),
  ]
}

/** The page of the API that newcomers try first. */
function firstPage(catalog: Catalog): string {
  const first = firstExampleCall(offeredApis(catalog))
  return first === undefined ? '/' : `/apis/${first.api.slug}`
}

/** Slugs and names of the APIs that accept a caller's own key. */
function apisTakingKeys(catalog: Catalog): [string, string][] {
  const taking = offeredApis(catalog).filter(({ upstream: { credential } }) =>
    /^byok/.test(credential?.accessMode ?? ''),
  )
  return taking.map(({ slug, upstream }) => [slug, upstream.displayName])
}
