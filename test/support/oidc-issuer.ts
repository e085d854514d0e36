import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'

/**
 * A provider of identities on loopback. It signs in a person without a question, and can give wrong
 * answers.
 */
export interface OidcIssuer {
  url: string
  clientId: string
  clientSecret: string
  /** Claims of the person who signs in next. */
  person: Record<string, unknown>
  /** Claims that the next ID tokens have instead of the right claims. */
  wrong: Record<string, unknown>
  /** True if it signs ID tokens with a key that it does not publish. */
  hasWrongKey: boolean
  /** True if the ID token lacks the groups and the address, which then only the user info has. */
  isTerse: boolean
  /** True if the token endpoint fails. */
  isAway: boolean
  /** Requests to the token endpoint. */
  exchanges: number
  /** Replaces the published key by another key with the same id, and signs with it from then on. */
  rotateKey: () => Promise<void>
  close: () => Promise<void>
}

interface Grant {
  nonce: string
  challenge: string
  redirectUri: string
}

export async function startOidcIssuer(): Promise<OidcIssuer> {
  let [own, foreign] = await Promise.all([generateKeyPair('RS256'), generateKeyPair('RS256')])
  const published = async () => ({ ...(await exportJWK(own.publicKey)), kid: 'own', alg: 'RS256', use: 'sig' })
  const grants = new Map<string, Grant>()
  const server = createServer((request, response) => {
    answer(request, response).catch((error) => response.writeHead(500).end(String(error)))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const issuer: OidcIssuer = {
    ...{ url, clientId: 'gateway', clientSecret: 'a secret of the test/with+signs' },
    ...{ person: {}, wrong: {}, hasWrongKey: false, isTerse: false, isAway: false, exchanges: 0 },
    rotateKey: async () => {
      ;[own, foreign] = [await generateKeyPair('RS256'), own]
    },
    close: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
  const json = (response: ServerResponse, status: number, body: object): void =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '/', url)
    if (pathname === '/.well-known/openid-configuration') {
      return json(response, 200, {
        ...{ issuer: url, authorization_endpoint: `${url}/authorize`, token_endpoint: `${url}/token` },
        ...{ jwks_uri: `${url}/jwks`, userinfo_endpoint: `${url}/me`, response_types_supported: ['code'] },
        ...{ subject_types_supported: ['public'], id_token_signing_alg_values_supported: ['RS256'] },
      })
    }
    if (pathname === '/jwks') return json(response, 200, { keys: [await published()] })
    if (pathname === '/me') return json(response, 200, issuer.person)
    if (pathname === '/authorize') {
      const code = randomUUID()
      const [nonce = '', challenge = '', redirectUri = ''] = ['nonce', 'code_challenge', 'redirect_uri'].map(
        (name) => searchParams.get(name) ?? '',
      )
      grants.set(code, { nonce, challenge, redirectUri })
      const back = new URL(redirectUri)
      back.search = String(new URLSearchParams({ code, state: searchParams.get('state') ?? '' }))
      return void response.writeHead(303, { location: back.href }).end()
    }
    if (pathname === '/token') return await exchange(request, response)
    json(response, 404, {})
  }

  async function exchange(request: IncomingMessage, response: ServerResponse): Promise<void> {
    issuer.exchanges += 1
    if (issuer.isAway) return void response.writeHead(503).end()
    const form = new URLSearchParams(Buffer.concat(await request.toArray()).toString())
    const grant = grants.get(form.get('code') ?? '')
    grants.delete(form.get('code') ?? '')
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    const [id = '', secret = ''] = Buffer.from((request.headers.authorization ?? '').slice(6), 'base64')
      .toString()
      .split(':')
      .map((part) => decodeURIComponent(part.replaceAll('+', ' ')))
    const isRight =
      grant?.challenge === challenge &&
      form.get('redirect_uri') === grant.redirectUri &&
      id === issuer.clientId &&
      secret === issuer.clientSecret
    if (!isRight) return json(response, 400, { error: 'invalid_grant' })
    const { sub, ...others } = issuer.person
    const iat = Math.floor(Date.now() / 1_000)
    const claims = {
      ...{ iat, exp: iat + 300, iss: url, aud: issuer.clientId, sub: String(sub), nonce: grant.nonce },
      ...(issuer.isTerse ? {} : others),
    }
    const idToken = await new SignJWT({ ...claims, ...issuer.wrong })
      .setProtectedHeader({ alg: 'RS256', kid: 'own' })
      .sign(issuer.hasWrongKey ? foreign.privateKey : own.privateKey)
    json(response, 200, { access_token: randomUUID(), token_type: 'Bearer', expires_in: 60, id_token: idToken })
  }

  return issuer
}
