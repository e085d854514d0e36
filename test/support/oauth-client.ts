import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'

/** What an application gets for a code or a refresh token. */
export interface Tokens {
  access_token: string
  refresh_token: string
  expires_in: number
}

/** An application that registered itself, and its way through a sign-in. */
export interface App {
  clientId: string
  redirectUri: string
}

const REDIRECT = 'http://127.0.0.1:9/callback'

export const codeVerifier = (): string => randomBytes(32).toString('base64url')

export function codeChallenge(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url')
}

export function postForm(url: string, form: Record<string, string>): Promise<Response> {
  return fetch(url, { method: 'POST', body: new URLSearchParams(form) })
}

/** `more`: further metadata. */
export async function registerApp(url: string, redirectUri = REDIRECT, more: object = {}): Promise<App> {
  const response = await fetch(`${url}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      client_name: 'Test application',
      redirect_uris: [redirectUri],
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      scope: 'call offline_access',
      ...more,
    }),
  })
  const text = await response.text()
  assert.equal(response.status, 201, text)
  return { clientId: JSON.parse(text).client_id, redirectUri }
}

export function authorizeUrl(url: string, { clientId, redirectUri }: App, given: Record<string, string> = {}): URL {
  const address = new URL('/oauth/authorize', url)
  address.search = String(
    new URLSearchParams({
      response_type: 'code',
      client_id: clientId,
      redirect_uri: redirectUri,
      scope: 'call offline_access',
      state: 'a-state',
      resource: `${url}/mcp`,
      code_challenge_method: 'S256',
      code_challenge: codeChallenge('not asked for'),
      ...given,
    }),
  )
  return address
}

/** A browser without pages. It keeps cookies and follows no redirect by itself. */
export class Visitor {
  readonly #cookies = new Map<string, string>()

  async get(address: string | URL, init: RequestInit = {}): Promise<Response> {
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const headers = { ...Object(init.headers), ...(cookie === '' ? {} : { cookie }) }
    const response = await fetch(address, { ...init, headers, redirect: 'manual' })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === '') this.#cookies.delete(name)
      else this.#cookies.set(name, value)
    }
    return response
  }

  /**
   * Goes to the consent page.
   * @returns its address
   */
  async begin(address: URL): Promise<string> {
    const response = await this.get(address)
    assert.equal(response.status, 303, await response.text())
    return new URL(response.headers.get('location') ?? '', address).href
  }

  /**
   * Sends the decision as the portal's page does, with a session of an account.
   *
   * @returns the address to which the gateway sends the application
   */
  async decide(consentPage: string, token: string, decision: object = { allow: true }): Promise<URL> {
    const response = await this.get(`${consentPage}/decision`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-portal-request': '1', authorization: `Bearer ${token}` },
      body: JSON.stringify(decision),
    })
    const text = await response.text()
    assert.equal(response.status, 200, text)
    const { location } = JSON.parse(text)
    // Some programs request the address with HEAD before the browser opens it.
    assert.equal((await this.get(location, { method: 'HEAD' })).status, 405)
    const resumed = await this.get(location)
    assert.equal(resumed.status, 303, await resumed.text())
    return new URL(resumed.headers.get('location') ?? '')
  }
}

/** The whole sign-in of an application whose user agrees. */
export async function signIn(
  url: string,
  token: string,
  { app, resource = `${url}/mcp`, decision }: { app: App; resource?: string; decision?: object },
): Promise<{ code: string; verifier: string; exchange: () => Promise<Response>; tokens: () => Promise<Tokens> }> {
  const verifier = codeVerifier()
  const visitor = new Visitor()
  const page = await visitor.begin(authorizeUrl(url, app, { resource, code_challenge: codeChallenge(verifier) }))
  const back = await visitor.decide(page, token, decision)
  assert.equal(back.searchParams.get('state'), 'a-state')
  assert.equal(back.searchParams.get('iss'), url)
  const code = back.searchParams.get('code') ?? assert.fail(back.href)
  const exchange = () =>
    postForm(`${url}/oauth/token`, {
      grant_type: 'authorization_code',
      client_id: app.clientId,
      redirect_uri: app.redirectUri,
      code,
      code_verifier: verifier,
      resource,
    })
  const tokens = async () => {
    const response = await exchange()
    const text = await response.text()
    assert.equal(response.status, 200, text)
    return JSON.parse(text)
  }
  return { code, verifier, exchange, tokens }
}
