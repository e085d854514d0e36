import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { type App, authorizeUrl, codeChallenge, codeVerifier, postForm, registerApp, Visitor } from './oauth-client.ts'

/** The outcome of one step of a sign-in. */
export interface StepOutcome {
  step: string
  status: number
  text: string
  tookMs: number
}

/**
 * Longest time that a step may take on a busy machine, milliseconds. After that the step has
 * failed.
 */
const STEP_MS_MAX = 8_000

/**
 * Brings sign-ins to each of their steps, so that a test can take all steps while a store is
 * unreachable.
 *
 * @returns the steps; each can be taken once if it works
 */
export async function prepareSteps(url: string, baseUrl: string, token: string) {
  // Each step has an application of its own, because an application that signs in again ends its
  // earlier connection.
  const flow = async () => {
    const begun = new Flow()
    await begun.begin(url, baseUrl, await registerApp(url))
    return begun
  }
  const [asked, decided, coded, signedIn, ending] = [
    await flow(),
    await flow(),
    await flow(),
    await flow(),
    await flow(),
  ]
  for (const begun of [decided, coded, signedIn, ending]) await begun.decide(token)
  for (const begun of [coded, signedIn, ending]) await begun.resume()
  const tokens = JSON.parse(await (await signedIn.exchange()).text())
  const ended = JSON.parse(await (await ending.exchange()).text())
  const bearer = (value: string) => ({ headers: { authorization: `Bearer ${value}` } })
  const refresh = { grant_type: 'refresh_token', client_id: signedIn.clientId, refresh_token: tokens.refresh_token }
  const steps: Record<string, () => Promise<Response>> = {
    register: () => postRegistration(url),
    authorize: () => new Flow().open(url, baseUrl, asked.app),
    details: () => asked.details(),
    decision: () => asked.sendDecision(token),
    resume: () => decided.sendResume(),
    token: () => coded.exchange(),
    refresh: () => postForm(`${url}/oauth/token`, refresh),
    revoke: () => postForm(`${url}/oauth/revoke`, { client_id: ending.clientId, token: ended.access_token }),
    connections: () => fetch(`${url}/v1/connections`, bearer(token)),
    call: () => fetch(`${url}/mcp`, { method: 'POST', ...bearer(tokens.access_token) }),
  }
  const take = async (step: string): Promise<StepOutcome> => {
    const startedAt = performance.now()
    const answered = steps[step]?.().then(async (response) => ({
      status: response.status,
      text: await response.text(),
    }))
    const gaveUp = delay(STEP_MS_MAX, { status: 0, text: 'no answer' })
    const outcome = await Promise.race([answered ?? assert.fail(step), gaveUp])
    return { step, ...outcome, tookMs: performance.now() - startedAt }
  }
  return { take, takeAll: () => Promise.all(Object.keys(steps).map(take)) }
}

function postRegistration(url: string): Promise<Response> {
  return fetch(`${url}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ redirect_uris: ['http://127.0.0.1:9/callback'], token_endpoint_auth_method: 'none' }),
  })
}

/**
 * A sign-in without a client library. It uses the addresses of `BASE_URL`, whatever address the
 * node has.
 */
class Flow {
  readonly #visitor = new Visitor()
  readonly #verifier = codeVerifier()
  app: App = { clientId: '', redirectUri: '' }
  #url = ''
  #baseUrl = ''
  #page = ''
  #next = ''
  #code = ''

  get clientId(): string {
    return this.app.clientId
  }

  open(url: string, baseUrl: string, app: App): Promise<Response> {
    this.#url = url
    this.#baseUrl = baseUrl
    this.app = app
    const asked = { resource: `${baseUrl}/mcp`, code_challenge: codeChallenge(this.#verifier) }
    return this.#visitor.get(authorizeUrl(url, app, asked))
  }

  async begin(url: string, baseUrl: string, app: App): Promise<void> {
    this.#page = this.#at(await located(await this.open(url, baseUrl, app)))
  }

  details(): Promise<Response> {
    return this.#visitor.get(`${this.#page}/details`, { headers: { 'x-portal-request': '1' } })
  }

  sendDecision(token: string): Promise<Response> {
    return this.#visitor.get(`${this.#page}/decision`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-portal-request': '1', authorization: `Bearer ${token}` },
      body: '{"allow":true}',
    })
  }

  async decide(token: string): Promise<void> {
    const response = await this.sendDecision(token)
    const text = await response.text()
    assert.equal(response.status, 200, text)
    this.#next = JSON.parse(text).location
  }

  sendResume(): Promise<Response> {
    return this.#visitor.get(this.#at(this.#next))
  }

  async resume(): Promise<void> {
    this.#code = new URL(await located(await this.sendResume())).searchParams.get('code') ?? ''
  }

  exchange(): Promise<Response> {
    return postForm(`${this.#url}/oauth/token`, {
      grant_type: 'authorization_code',
      client_id: this.app.clientId,
      redirect_uri: this.app.redirectUri,
      code: this.#code,
      code_verifier: this.#verifier,
      resource: `${this.#baseUrl}/mcp`,
    })
  }

  #at(location: string): string {
    const { pathname, search } = new URL(location, this.#url)
    return this.#url + pathname + search
  }
}

async function located(response: Response): Promise<string> {
  assert.equal(response.status, 303, await response.text())
  return response.headers.get('location') ?? ''
}
