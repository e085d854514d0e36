import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { request } from 'node:https'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { freePort } from '../../src/local/embedded/free-port.ts'
import { type Account, signUp } from '../support/client.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { type RawAnswer, rawHttp } from '../support/raw-http.ts'

const BASE = 'https://api.example.org'
const HSTS = /^max-age=\d{7,}/

let gateway: Gateway
let account: Account

before(async () => {
  gateway = await startGateway()
  account = await signUp(gateway)
})
after(() => gateway.stop())

const portOf = (url: string): number => Number(new URL(url).port)

function ask(url: string, target: string, more: string[] = [], method = 'GET'): Promise<RawAnswer> {
  const lines = [`${method} ${target} HTTP/1.1`, 'Host: evil.example', 'Connection: close', ...more]
  return rawHttp(portOf(url), `${lines.join('\r\n')}\r\n\r\n`)
}

function checkRedirect(answer: RawAnswer, path: string, base = BASE): void {
  assert.equal(answer.status, 308, answer.text)
  assert.equal(answer.headers.location, base + path)
  assert.equal(answer.body, '')
  assert.ok(answer.headers['x-request-id'])
  assert.equal(answer.headers['strict-transport-security'], undefined)
}

describe('behind a trusted proxy, under an https: address', () => {
  let url: string
  before(async () => {
    url = await gateway.startWeb({ BASE_URL: BASE, TRUST_PROXY: '127.0.0.1' })
  })

  it('plain HTTP is sent to the same address under it, before anything else happens', async () => {
    const plain = ['X-Forwarded-Proto: http']
    const path = '/v1/call/weather/current?latitude=1&longitude=1'
    checkRedirect(await ask(url, path, [...plain, `X-Api-Key: ${account.test}`]), path)
    checkRedirect(await ask(url, '/v1/me', plain), '/v1/me')
    checkRedirect(await ask(url, '/nope?a=%20b', plain), '/nope?a=%20b')
    checkRedirect(await ask(url, '/v1/catalog', plain, 'DELETE'), '/v1/catalog')
    checkRedirect(
      await ask(url, '/v1/auth/login', [...plain, 'Content-Type: text/xml', 'Content-Length: 0'], 'POST'),
      '/v1/auth/login',
    )
    checkRedirect(await ask(url, '/v1/catalog'), '/v1/catalog')
  })

  it('never sends to another host', async () => {
    const targets = ['//evil.example/x', 'http://evil.example/v1/catalog', '/\\evil.example', '/@evil.example']
    for (const target of targets) {
      const { headers, text } = await ask(url, target, ['X-Forwarded-Proto: http', 'X-Forwarded-Host: evil.example'])
      assert.equal(new URL(headers.location ?? '').origin, BASE, text)
    }
  })

  it('HTTPS is served, with HSTS', async () => {
    const answer = await ask(url, '/v1/catalog', ['X-Forwarded-Proto: https'])
    assert.equal(answer.status, 200)
    assert.match(answer.headers['strict-transport-security'] ?? '', HSTS)
    const refused = await ask(url, '/v1/me', ['X-Forwarded-Proto: https'])
    assert.equal(refused.status, 401)
    assert.match(refused.headers['strict-transport-security'] ?? '', HSTS)
    assert.ok(JSON.parse(refused.body).docs.startsWith(`${BASE}/docs/errors#`))
  })
})

describe('without a trusted proxy', () => {
  it('what a client says of its scheme does not count', async () => {
    const url = await gateway.startWeb({ BASE_URL: BASE })
    checkRedirect(await ask(url, '/v1/catalog', ['X-Forwarded-Proto: https']), '/v1/catalog')
    const foreign = await gateway.startWeb({ BASE_URL: BASE, TRUST_PROXY: '192.0.2.1' })
    checkRedirect(await ask(foreign, '/v1/catalog', ['X-Forwarded-Proto: https']), '/v1/catalog')
  })

  it('nothing is redirected under an http: address, and there is no HSTS', async () => {
    const { status, headers } = await ask(gateway.url, '/v1/catalog', ['X-Forwarded-Proto: http'])
    assert.equal(status, 200)
    assert.equal(headers['strict-transport-security'], undefined)
  })
})

describe('with a certificate of its own', () => {
  it('a node serves HTTPS, and a plain listener redirects to it', async () => {
    const [certFile, keyFile] = [join(gateway.services.folder, 'cert.pem'), join(gateway.services.folder, 'key.pem')]
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-days', '1']
    await promisify(execFile)('openssl', [
      ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', keyFile, '-out', certFile],
      ...subject,
    ])
    const redirectPort = await freePort()
    const url = await gateway.startWeb({
      BASE_URL: BASE,
      TLS_CERT_FILE: certFile,
      TLS_KEY_FILE: keyFile,
      HTTP_REDIRECT_PORT: String(redirectPort),
    })
    const ca = await readFile(certFile)
    const answer = await new Promise<{ status: number; hsts: string; body: string }>((resolve, reject) => {
      const path = '/v1/call/weather/current?latitude=1&longitude=1'
      const headers = { 'x-api-key': account.test }
      request({ host: 'localhost', port: portOf(url), path, headers, ca, agent: false }, (response) => {
        let body = ''
        response.on('data', (chunk) => {
          body += chunk
        })
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            hsts: String(response.headers['strict-transport-security']),
            body,
          }),
        )
      })
        .on('error', reject)
        .end()
    })
    assert.equal(answer.status, 200, answer.body)
    assert.match(answer.hsts, HSTS)
    const path = '/v1/me?x=1'
    checkRedirect(await ask(`http://127.0.0.1:${redirectPort}`, path), path)
    checkRedirect(await ask(`http://127.0.0.1:${redirectPort}`, 'http://evil.example/x'), '/')
    // Plain HTTP on the HTTPS port is no HTTP to it: it closes.
    assert.equal((await ask(url, '/v1/catalog')).status, Number.NaN)
  })

  it('that cannot be read the boot ends with the name of the variable', async () => {
    await assert.rejects(
      gateway.startWeb({ BASE_URL: BASE, TLS_CERT_FILE: '/nowhere/cert.pem', TLS_KEY_FILE: '/nowhere/key.pem' }),
      /web: TLS_CERT_FILE names a file that cannot be read: \/nowhere\/cert\.pem\n/,
    )
  })
})

describe('a node whose port is taken', () => {
  it('ends with one sentence that names the variable', async () => {
    await assert.rejects(
      gateway.startWeb({ PORT: String(portOf(gateway.url)) }),
      (error) =>
        error instanceof Error &&
        error.message.includes(`web: PORT cannot be used: port ${portOf(gateway.url)} is in use\n`) &&
        !error.message.includes('EADDRINUSE'),
    )
  })
})
