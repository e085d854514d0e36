import { sql } from '../support/client.ts'
import type { Gateway } from '../support/gateway.ts'
import { type App, authorizeUrl, registerApp } from '../support/oauth-client.ts'
import type { Outcome, Scenario } from './scenario.ts'

const EVIL = 'https://evil.example/cb'

/** Schemes of systems and browsers, which nobody may register as a redirect address. */
const SCHEMES =
  'search-ms:query=x MS-Settings:x chrome://x ftp://x/ ws://x/ view-source:https://x/ tel:1 mailto:a@x.example'

/** Sign-ins and registrations of a stranger without an account. */
export const signIns: Scenario = {
  name: 'sign-ins',
  claim:
    'sign-ins of strangers leave nothing in Postgres, redirect to no address of theirs, fetch nothing, and show at most 60 characters of their name',
  run: async (gateway, seconds): Promise<Outcome> => {
    const { url } = gateway
    const app = await registerApp(url, EVIL)
    const { begun, rows } = await rowsLeft(gateway, app, seconds)
    let led = 0
    for (const given of [
      { prompt: 'none' },
      { resource: 'https://evil.example' },
      { code_challenge: '', code_challenge_method: '' },
      { response_type: 'token' },
      { prompt: 'none', response_mode: 'form_post' },
    ]) {
      const response = await fetch(authorizeUrl(url, app, given), { redirect: 'manual' })
      const text = `${response.headers.get('location')} ${await response.text()}`
      if (text.includes('evil.example/cb')) led += 1
    }
    let registered = 0
    for (const address of SCHEMES.split(' ')) if ((await register(url, [address])).status === 201) registered += 1
    const name = `Agent API Gateway SECURITY NOTICE \u202e${'x'.repeat(13_000)}`
    const { body } = await register(url, [EVIL], { client_name: name })
    const fetching = await register(url, [EVIL], { sector_identifier_uri: 'https://127.0.0.1:9/x.json' })
    const characters = [...String(body.client_name)].length
    return {
      isPassed: begun > 0 && rows === 0 && led === 0 && registered === 0 && characters <= 60 && fetching.status === 201,
      figures: {
        begun,
        'rows in Postgres': rows,
        'led to the stranger of 5': led,
        'schemes registered of 8': registered,
        'characters of a name': characters,
        'registration with a sector': fetching.status,
      },
    }
  },
}

async function rowsLeft(gateway: Gateway, app: App, seconds: number): Promise<{ begun: number; rows: number }> {
  const count = async () =>
    Number((await sql<{ count: string }>(gateway, 'select count(*) from oauth_artifacts'))[0]?.count)
  const before = await count()
  const resource = `${gateway.environment['BASE_URL']}/mcp`
  const address = authorizeUrl(gateway.url, app, { resource, state: 's'.repeat(3_300) })
  const end = performance.now() + seconds * 1_000
  let begun = 0
  const loop = async (): Promise<void> => {
    while (performance.now() < end) {
      const response = await fetch(address, { redirect: 'manual' })
      await response.arrayBuffer()
      if (response.headers.get('location')?.includes('/connect/')) begun += 1
    }
  }
  await Promise.all(Array.from({ length: 8 }, loop))
  return { begun, rows: (await count()) - before }
}

async function register(
  url: string,
  redirects: string[],
  more: object = {},
): Promise<{ status: number; body: { client_name?: string } }> {
  const response = await fetch(`${url}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ redirect_uris: redirects, token_endpoint_auth_method: 'none', ...more }),
  })
  return { status: response.status, body: JSON.parse(await response.text()) }
}
