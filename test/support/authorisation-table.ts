import { METHODS } from 'node:http'

/**
 * Who may do what, written by hand, because it is the oracle of authorisation.test.ts. It has one
 * row for each route and kind of object. The statuses of a row are for a stranger, a former member,
 * a member, an admin and the owner of the team, in this order. If a caller has no valid session,
 * every row answers 401.
 */
export interface Row {
  route: string
  /**
   * Names of the objects that fill `:id`, `:memberId` and `:apiSlug`. The fixture knows their
   * values.
   */
  path?: Record<string, string>
  body?: unknown
  expected: string
}

export const PRINCIPALS = ['stranger', 'former', 'member', 'admin', 'owner'] as const
export type PrincipalName = (typeof PRINCIPALS)[number]

const everyone = (status: number): string => PRINCIPALS.map(() => status).join(' ')

export const TABLE: Row[] = [
  { route: 'GET /v1/me', expected: everyone(200) },
  { route: 'GET /v1/me/export', expected: everyone(200) },
  { route: 'DELETE /v1/me', body: { password: 'not the password' }, expected: everyone(401) },
  { route: 'DELETE /v1/me', body: {}, expected: everyone(400) },
  { route: 'GET /v1/auth/verification', expected: everyone(200) },
  { route: 'POST /v1/auth/logout', expected: everyone(204) },
  {
    route: 'POST /v1/auth/password',
    body: { currentPassword: 'not the password', newPassword: 'long enough' },
    expected: everyone(401),
  },
  { route: 'POST /v1/auth/password', body: { newPassword: 'long enough' }, expected: everyone(400) },

  { route: 'GET /v1/billing/status', expected: everyone(200) },
  { route: 'GET /v1/usage', expected: everyone(200) },
  { route: 'GET /v1/logs', expected: everyone(200) },
  { route: 'GET /v1/logs/:id', path: { id: 'random' }, expected: everyone(404) },

  { route: 'GET /v1/keys', expected: everyone(200) },
  { route: 'POST /v1/keys', body: {}, expected: everyone(201) },
  { route: 'POST /v1/keys', body: { environment: 'root' }, expected: everyone(400) },
  { route: 'POST /v1/keys', body: { teamId: '$team' }, expected: '404 404 403 201 201' },
  { route: 'POST /v1/keys', body: { teamId: '$otherTeam' }, expected: everyone(404) },
  { route: 'POST /v1/keys', body: { teamId: '$random' }, expected: everyone(404) },
  { route: 'POST /v1/keys', body: { teamId: '$malformed' }, expected: everyone(400) },
  ...['PATCH /v1/keys/:id', 'POST /v1/keys/:id/rotate'].flatMap((route): Row[] => {
    const [body, status] = route.startsWith('PATCH') ? [{ label: 'Another' }, 200] : [{}, 201]
    return [
      { route, path: { id: 'ownKey' }, body, expected: everyone(status) },
      { route, path: { id: 'ownRevokedKey' }, body, expected: everyone(404) },
      { route, path: { id: 'otherUserKey' }, body, expected: everyone(404) },
      { route, path: { id: 'teamKey' }, body, expected: `404 404 403 ${status} ${status}` },
      { route, path: { id: 'otherTeamKey' }, body, expected: everyone(404) },
      { route, path: { id: 'malformed' }, body, expected: everyone(404) },
    ]
  }),
  { route: 'GET /v1/me/notices', expected: everyone(200) },
  { route: 'PUT /v1/me/notices', body: { byMail: false }, expected: everyone(200) },
  { route: 'PUT /v1/me/notices', body: {}, expected: everyone(400) },
  { route: 'DELETE /v1/keys/:id', path: { id: 'ownKey' }, expected: everyone(204) },
  { route: 'DELETE /v1/keys/:id', path: { id: 'ownRevokedKey' }, expected: everyone(404) },
  { route: 'DELETE /v1/keys/:id', path: { id: 'otherUserKey' }, expected: everyone(404) },
  { route: 'DELETE /v1/keys/:id', path: { id: 'teamKey' }, expected: '404 404 403 204 204' },
  { route: 'DELETE /v1/keys/:id', path: { id: 'otherTeamKey' }, expected: everyone(404) },
  { route: 'DELETE /v1/keys/:id', path: { id: 'random' }, expected: everyone(404) },
  { route: 'DELETE /v1/keys/:id', path: { id: 'malformed' }, expected: everyone(404) },

  { route: 'GET /v1/provider-keys', expected: everyone(200) },
  { route: 'PUT /v1/provider-keys/:apiSlug', path: { apiSlug: 'news' }, body: { key: 'k' }, expected: everyone(200) },
  { route: 'PUT /v1/provider-keys/:apiSlug', path: { apiSlug: 'news' }, body: {}, expected: everyone(400) },
  {
    route: 'PUT /v1/provider-keys/:apiSlug',
    path: { apiSlug: 'dog-images' },
    body: { key: 'k' },
    expected: everyone(400),
  },
  { route: 'PUT /v1/provider-keys/:apiSlug', path: { apiSlug: 'none' }, body: { key: 'k' }, expected: everyone(404) },
  { route: 'DELETE /v1/provider-keys/:apiSlug', path: { apiSlug: 'news' }, expected: everyone(204) },
  { route: 'DELETE /v1/provider-keys/:apiSlug', path: { apiSlug: 'weather' }, expected: everyone(404) },
  { route: 'DELETE /v1/provider-keys/:apiSlug', path: { apiSlug: 'none' }, expected: everyone(404) },
  {
    route: 'POST /v1/provider-keys/:apiSlug/validate',
    path: { apiSlug: 'weather' },
    expected: everyone(404),
  },

  // Without a mail server the gateway sends no mail.
  { route: 'POST /v1/auth/verification', expected: everyone(403) },

  { route: 'GET /v1/connections', expected: everyone(200) },
  { route: 'PATCH /v1/connections/:id', path: { id: 'random' }, body: { apis: null }, expected: everyone(404) },
  { route: 'PATCH /v1/connections/:id', path: { id: 'malformed' }, body: { apis: null }, expected: everyone(404) },
  { route: 'PATCH /v1/connections/:id', path: { id: 'random' }, body: { addresses: [] }, expected: everyone(400) },
  { route: 'DELETE /v1/connections/:id', path: { id: 'random' }, expected: everyone(404) },
  { route: 'DELETE /v1/connections/:id', path: { id: 'malformed' }, expected: everyone(404) },

  { route: 'GET /v1/teams', expected: everyone(200) },
  { route: 'POST /v1/teams', body: { name: 'Another' }, expected: everyone(201) },
  { route: 'POST /v1/teams', body: { name: '' }, expected: everyone(400) },

  { route: 'GET /v1/teams/:id', path: { id: 'team' }, expected: '404 404 200 200 200' },
  { route: 'GET /v1/teams/:id', path: { id: 'otherTeam' }, expected: everyone(404) },
  { route: 'GET /v1/teams/:id', path: { id: 'random' }, expected: everyone(404) },
  { route: 'GET /v1/teams/:id', path: { id: 'malformed' }, expected: everyone(404) },

  { route: 'PUT /v1/teams/:id', path: { id: 'team' }, body: { name: 'New' }, expected: '404 404 403 200 200' },
  { route: 'PUT /v1/teams/:id', path: { id: 'team' }, body: { name: 7 }, expected: '404 404 403 400 400' },
  { route: 'PUT /v1/teams/:id', path: { id: 'otherTeam' }, body: { name: 'New' }, expected: everyone(404) },
  { route: 'PUT /v1/teams/:id', path: { id: 'random' }, body: { name: 'New' }, expected: everyone(404) },
  { route: 'PUT /v1/teams/:id', path: { id: 'malformed' }, body: { name: 'New' }, expected: everyone(404) },

  // The row names a user who is no member. The tests of teams cover how the owner hands a team over
  // and deletes it.
  ...['team', 'otherTeam', 'random', 'malformed'].flatMap((id): Row[] => [
    {
      route: 'POST /v1/teams/:id/transfer',
      path: { id },
      body: { memberId: 'nobody' },
      expected: id === 'team' ? '404 404 403 403 404' : everyone(404),
    },
    { route: 'DELETE /v1/teams/:id', path: { id }, expected: id === 'team' ? '404 404 403 403 204' : everyone(404) },
  ]),

  ...['team', 'otherTeam', 'random', 'malformed'].flatMap((id): Row[] => {
    const route = 'POST /v1/teams/:id/members'
    const isTeam = id === 'team'
    return [
      { route, path: { id }, body: { email: '$newcomer' }, expected: isTeam ? '404 404 403 201 201' : everyone(404) },
      {
        route,
        path: { id },
        body: { email: '$newcomer', role: 'admin' },
        expected: isTeam ? '404 404 403 201 201' : everyone(404),
      },
      {
        route,
        path: { id },
        body: { email: '$newcomer', role: 'owner' },
        expected: isTeam ? '404 404 403 400 400' : everyone(404),
      },
      {
        route,
        path: { id },
        body: { email: '$otherMember' },
        expected: isTeam ? '404 404 403 409 409' : everyone(404),
      },
      {
        route,
        path: { id },
        body: { email: 'nobody@example.com' },
        expected: isTeam ? '404 404 403 404 404' : everyone(404),
      },
    ]
  }),

  ...memberRows('PUT', { role: 'member' }, [
    ['team', 'self', '404 404 403 403 403'],
    ['team', 'otherMember', '404 404 403 403 200'],
    ['team', 'otherAdmin', '404 404 403 403 200'],
    ['team', 'owner', '404 404 403 403 403'],
    ['team', 'memberElsewhere', everyone(404)],
    ['team', 'random', everyone(404)],
    ['team', 'malformed', everyone(404)],
    ['otherTeam', 'memberElsewhere', everyone(404)],
    ['otherTeam', 'self', everyone(404)],
    ['random', 'otherMember', everyone(404)],
    ['malformed', 'otherMember', everyone(404)],
  ]),
  ...memberRows('PUT', { role: 'admin' }, [
    ['team', 'otherMember', '404 404 403 403 200'],
    ['team', 'self', '404 404 403 403 403'],
  ]),
  ...memberRows('PUT', { role: 'owner' }, [['team', 'otherMember', '404 404 403 403 400']]),
  ...memberRows('DELETE', undefined, [
    ['team', 'self', '404 404 204 204 403'],
    ['team', 'otherMember', '404 404 403 204 204'],
    ['team', 'otherAdmin', '404 404 403 204 204'],
    ['team', 'owner', '404 404 403 403 403'],
    ['team', 'memberElsewhere', everyone(404)],
    ['team', 'random', everyone(404)],
    ['team', 'malformed', everyone(404)],
    ['otherTeam', 'memberElsewhere', everyone(404)],
    ['otherTeam', 'self', everyone(404)],
    ['random', 'otherMember', everyone(404)],
    ['malformed', 'otherMember', everyone(404)],
  ]),
]

function memberRows(method: string, body: unknown, rows: [id: string, memberId: string, expected: string][]): Row[] {
  return rows.map(([id, memberId, expected]) => ({
    route: `${method} /v1/teams/:id/members/:memberId`,
    path: { id, memberId },
    body,
    expected,
  }))
}

/**
 * Routes that need no credential: public routes, and the portal's pages and forms, which hold
 * nothing that belongs to anybody.
 */
export const PUBLIC = new Set([
  'GET /healthz',
  'POST /v1/auth/verify',
  'GET /verify',
  'POST /verify',
  'POST /v1/auth/reset',
  ...['/forgot', '/reset'].flatMap((path) => [`GET ${path}`, `POST ${path}`]),
  // Sign-in at the OIDC provider. A sealed cookie or a sealed claim says whose sign-in it is.
  ...['GET /login/oidc', 'GET /login/callback', 'POST /login/claim'],
  'GET /favicon.ico',
  'GET /robots.txt',
  'GET /sitemap.txt',
  'GET /client.ts',
  'GET /client.py',
  'GET /postman.json',
  'GET /.well-known/api-catalog',
  'GET /docs/guides/:name.md',
  'GET /docs/guides',
  'GET /docs/guides/:name',
  'GET /docs/reference',
  ...['limits', 'asynchronous-call'].map((name) => `GET /docs/pictures/${name}.svg`),
  'GET /readyz',
  'POST /v1/auth/signup',
  'POST /v1/auth/login',
  'GET /v1/catalog',
  'GET /v1/catalog/:slug',
  // Pages and documentation. Everything on them is public; their scripts fetch all other data from
  // the routes of the table.
  ...['/', '/apis', '/apis/:slug', '/agents', '/signup', '/login'].map((path) => `GET ${path}`),
  ...['', '/keys', '/teams', '/provider-keys', '/connections', '/settings', '/calls', '/calls/:id'].map(
    (path) => `GET /account${path}`,
  ),
  ...['/docs', '/docs/errors', '/docs/errors.md', '/docs/search', '/docs/search.md', '/docs/apis/:slug.md'].map(
    (path) => `GET ${path}`,
  ),
  ...['/openapi.json', '/llms.txt', '/assets/:version/*', '/icon-64.png'].map((path) => `GET ${path}`),
  // Sign-in for applications. A decision needs a session, and only the consent page may send it.
  ...['oauth-protected-resource', 'oauth-authorization-server', 'openid-configuration'].flatMap((document) =>
    [
      `/.well-known/${document}`,
      `/.well-known/${document}/*`,
      ...['/mcp', '/mcp/:slug'].flatMap((path) => [
        `${path}/.well-known/${document}`,
        `${path}/.well-known/${document}/`,
      ]),
    ].flatMap((path) => [`GET ${path}`, `OPTIONS ${path}`]),
  ),
  ...['/oauth/authorize', '/oauth/authorize/:uid', '/oauth/jwks'].map((path) => `GET ${path}`),
  ...['register', 'token', 'revoke'].map((name) => `POST /oauth/${name}`),
  ...['register', 'token', 'revoke', 'jwks'].map((name) => `OPTIONS /oauth/${name}`),
  'GET /connect/:uid',
  'GET /connect/:uid/details',
  'POST /connect/:uid/decision',
  // Routes for the portal's own pages, whose credential is in the body or is the session that they
  // end.
  ...['signup', 'login', 'logout'].map((action) => `POST /portal/${action}`),
])

/**
 * Routes that take an API key as well as a session. Plans, not roles, decide who may call which
 * API.
 */
export const BY_KEY_OR_SESSION = new Set([
  'GET /v1/call/*',
  'POST /v1/call/*',
  'GET /v1/calls/:id',
  'DELETE /v1/calls/:id',
  'POST /v1/batch',
  'POST /mcp',
  'POST /mcp/:slug',
])

/**
 * The proxy route takes these methods only to refuse them in its own shape, after it has checked
 * the credential.
 */
export const REFUSED = new Set(
  METHODS.filter((method) => !['CONNECT', 'GET', 'HEAD', 'POST'].includes(method)).map(
    (method) => `${method} /v1/call/*`,
  ),
)
