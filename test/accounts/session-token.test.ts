import assert from 'node:assert/strict'
import { createHmac, generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { EncryptJWT, SignJWT } from 'jose'
import { SESSION_MS, signSessionToken, verifySessionToken } from '../../src/accounts/session-token.ts'
import { GatewayError } from '../../src/errors.ts'

const secret = { id: 'current', bytes: randomBytes(32) }
const earlier = { id: 'earlier', bytes: randomBytes(32) }
const secrets = [secret, earlier]
const now = Math.floor(Date.now() / 1_000)
const HEADER = { alg: 'HS256', kid: secret.id, typ: 'session+jwt' }
const CLAIMS = {
  iss: 'agent-api-gateway',
  aud: 'agent-api-gateway',
  sub: randomUUID(),
  sid: randomUUID(),
  iat: now,
  exp: now + 3_600,
}

const encoded = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

/**
 * Makes a token with a right HMAC over any header and claims. If a member is undefined, it is left
 * out.
 */
function token(header: object = {}, claims: object = {}, bytes = secret.bytes, hash = 'sha256'): string {
  const text = `${encoded({ ...HEADER, ...header })}.${encoded({ ...CLAIMS, ...claims })}`
  return `${text}.${createHmac(hash, bytes).update(text).digest('base64url')}`
}

const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
const pem = Buffer.from(publicKey.export({ type: 'spki', format: 'pem' }))
const [header = '', claims = '', signature = ''] = token().split('.')
const signed = (algorithm: string) =>
  new SignJWT(CLAIMS).setProtectedHeader({ ...HEADER, alg: algorithm }).sign(privateKey)
const jwe = await new EncryptJWT(CLAIMS)
  .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', kid: secret.id, typ: 'session+jwt' })
  .encrypt(secret.bytes)

const HOSTILE: Record<string, string> = {
  'an empty text': '',
  'no token': 'null',
  dots: '..',
  'one part': header,
  'two parts': `${header}.${claims}`,
  'four parts': `${token()}.x`,
  'no header': `.${claims}.${signature}`,
  'no claims': `${header}..${signature}`,
  'a stripped signature': `${header}.${claims}.`,
  'a short signature': `${header}.${claims}.${signature.slice(0, 20)}`,
  'a changed signature': `${header}.${claims}.${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`,
  'a padded signature': `${token()}=`,
  'white space': ` ${token()}`,
  'a line break': `${token()}\n`,
  'NUL in a part': `${header}\0.${claims}.${signature}`,
  'standard base64': `${header}.${claims}+/.${signature}`,
  'claims of another token': `${header}.${encoded({ ...CLAIMS, sub: randomUUID() })}.${signature}`,
  'alg none': `${encoded({ ...HEADER, alg: 'none' })}.${claims}.`,
  'alg None': `${encoded({ ...HEADER, alg: 'None' })}.${claims}.`,
  'alg nOnE, signed': token({ alg: 'nOnE' }),
  'alg none, signed': token({ alg: 'none' }),
  'alg hs256': token({ alg: 'hs256' }),
  'alg HS384': token({ alg: 'HS384' }, {}, secret.bytes, 'sha384'),
  'alg HS512': token({ alg: 'HS512' }, {}, secret.bytes, 'sha512'),
  'alg RS256 over our secret': token({ alg: 'RS256' }),
  'alg ES256 over our secret': token({ alg: 'ES256' }),
  'alg absent': token({ alg: undefined }),
  'alg a number': token({ alg: 256 }),
  'alg a list': token({ alg: ['HS256'] }),
  'an RSA signature': await signed('RS256'),
  'an RSA-PSS signature': await signed('PS256'),
  'an HMAC under a public key': token({}, {}, pem),
  'an HMAC under an empty secret': token({}, {}, Buffer.alloc(0)),
  'an HMAC under zeros': token({}, {}, Buffer.alloc(32)),
  "another environment's secret": token({}, {}, randomBytes(32)),
  'an earlier secret under the current kid': token({}, {}, earlier.bytes),
  'no kid': token({ kid: undefined }),
  'an unknown kid': token({ kid: 'other' }),
  'a kid that is a path': token({ kid: '../../dev/null' }, {}, Buffer.alloc(0)),
  'a kid that is SQL': token({ kid: "' or 1=1 --" }),
  'a kid that is a prototype': token({ kid: '__proto__' }),
  'a kid that is an object': token({ kid: { id: secret.id } }),
  'a kid that is an address': token({ kid: 'http://127.0.0.1:1/key' }),
  'jku with an unknown kid': token({ kid: 'x', jku: 'http://127.0.0.1:1/jwks' }, {}, randomBytes(32)),
  'x5u with an unknown kid': token({ kid: 'x', x5u: 'http://127.0.0.1:1/cert' }, {}, randomBytes(32)),
  'a key of its own in jwk': token(
    { kid: 'x', jwk: { kty: 'oct', k: Buffer.alloc(32).toString('base64url') } },
    {},
    Buffer.alloc(32),
  ),
  'an unknown crit': token({ crit: ['exp'] }),
  'an empty crit': token({ crit: [] }),
  'crit b64': token({ crit: ['b64'], b64: false }),
  'typ absent': token({ typ: undefined }),
  'typ JWT': token({ typ: 'JWT' }),
  'typ of an access token': token({ typ: 'at+jwt' }),
  'another issuer': token({}, { iss: 'https://evil.example' }),
  'no issuer': token({}, { iss: undefined }),
  'another audience': token({}, { aud: 'other' }),
  'no audience': token({}, { aud: undefined }),
  'an empty list of audiences': token({}, { aud: [] }),
  'no exp': token({}, { exp: undefined }),
  'exp as a text': token({}, { exp: String(now + 3_600) }),
  'exp null': token({}, { exp: null }),
  'no iat': token({}, { iat: undefined }),
  'iat as a text': token({}, { iat: 'now' }),
  'iat an hour ahead': token({}, { iat: now + 3_600 }),
  'nbf an hour ahead': token({}, { nbf: now + 3_600 }),
  'nbf as a text': token({}, { nbf: '0' }),
  'no sub': token({}, { sub: undefined }),
  'sub no UUID': token({}, { sub: 'admin' }),
  'sub a list': token({}, { sub: [CLAIMS.sub] }),
  'sub a UUID in capitals': token({}, { sub: CLAIMS.sub.toUpperCase().replace(/\d/g, 'A') }),
  'no sid': token({}, { sid: undefined }),
  'sid a number': token({}, { sid: 1 }),
  'sid with SQL': token({}, { sid: `${CLAIMS.sid}' or '1'='1` }),
  'claims that are a list': (() => {
    const text = `${header}.${encoded([CLAIMS])}`
    return `${text}.${createHmac('sha256', secret.bytes).update(text).digest('base64url')}`
  })(),
  'claims that are no JSON': (() => {
    const text = `${header}.${encoded('{"sub":')}`
    return `${text}.${createHmac('sha256', secret.bytes).update(text).digest('base64url')}`
  })(),
  'a JWE': jwe,
  'JSON serialization': JSON.stringify({ payload: claims, protected: header, signature }),
  'general JSON serialization': JSON.stringify({ payload: claims, signatures: [{ protected: header, signature }] }),
  '100 kB': token({}, { padding: 'x'.repeat(100_000) }, randomBytes(32)),
  'dots without end': '.'.repeat(10_000),
}

async function codeOf(text: string): Promise<string> {
  try {
    await verifySessionToken(secrets, text, Date.now())
  } catch (error) {
    assert.ok(error instanceof GatewayError, `threw ${error}`)
    assert.equal(error.status, 401)
    return error.code
  }
  return 'accepted'
}

describe('a session token', () => {
  it('a session token lasts 24 hours from its log-in, however long the database took to store the session', async () => {
    const expiresAt = new Date(Date.now() + SESSION_MS - 1_500)
    const token = await signSessionToken(secrets, { userId: randomUUID(), sessionId: randomUUID() }, expiresAt)
    const { exp, iat } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    assert.equal(exp - iat, 86_400)
    assert.equal((await verifySessionToken(secrets, token, Date.now())).expiresAt, exp * 1_000)
  })

  it('a session token that the gateway signs is accepted until it ends, and its claims contain no rights', async () => {
    const expiresAt = new Date((now + 3_600) * 1_000)
    const text = await signSessionToken(secrets, { userId: CLAIMS.sub, sessionId: CLAIMS.sid }, expiresAt)
    assert.deepEqual(await verifySessionToken(secrets, text, Date.now()), {
      userId: CLAIMS.sub,
      sessionId: CLAIMS.sid,
      expiresAt: (now + 3_600) * 1_000,
    })
    const [first = '', second = ''] = text.split('.')
    assert.deepEqual(JSON.parse(Buffer.from(first, 'base64url').toString()), HEADER)
    assert.deepEqual(Object.keys(JSON.parse(Buffer.from(second, 'base64url').toString())).sort(), [
      'aud',
      'exp',
      'iat',
      'iss',
      'sid',
      'sub',
    ])
  })

  it('a session token that this test builds like the hostile tokens, but correctly, is accepted', async () => {
    assert.equal(await codeOf(token()), 'accepted')
    const inThePast = Math.floor(Date.now() / 1_000) - 3
    assert.equal(await codeOf(token({}, { exp: inThePast })), 'accepted', 'clocks may differ by 5 s')
  })

  it('a session token of an earlier secret is accepted while that secret is listed', async () => {
    const old = token({ kid: earlier.id }, {}, earlier.bytes)
    assert.equal(await codeOf(old), 'accepted')
    await assert.rejects(verifySessionToken([secret], old, Date.now()), { code: 'INVALID_TOKEN' })
  })

  it('a session token is refused with TOKEN_EXPIRED only if everything else about it is valid', async () => {
    assert.equal(await codeOf(token({}, { exp: now - 6 })), 'TOKEN_EXPIRED')
    assert.equal(await codeOf(token({}, { exp: 0 })), 'TOKEN_EXPIRED')
    assert.equal(await codeOf(token({}, { exp: now - 60 }, randomBytes(32))), 'INVALID_TOKEN')
    assert.equal(await codeOf(token({}, { exp: now - 60, aud: 'other' })), 'INVALID_TOKEN')
    assert.equal(await codeOf(token({ typ: 'JWT' }, { exp: now - 60 })), 'INVALID_TOKEN')
  })

  assert.ok(Object.keys(HOSTILE).length >= 60)
  for (const [what, text] of Object.entries(HOSTILE)) {
    it(`a session token with ${what} is INVALID_TOKEN`, async () => assert.equal(await codeOf(text), 'INVALID_TOKEN'))
  }
})
