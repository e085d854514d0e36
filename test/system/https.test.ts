import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { copyFile, readFile } from 'node:fs/promises'
import { request } from 'node:https'
import { type AddressInfo, connect as connectPlain, createServer } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { connect } from 'node:tls'
import pg from 'pg'
import { freePort } from '../../src/local/embedded/free-port.ts'
import { type CertificateFiles, makeCertificate } from '../support/certificate.ts'
import { type Account, signUp } from '../support/client.ts'
import { type Gateway, startGateway, until } from '../support/gateway.ts'
import { type RawAnswer, rawHttp } from '../support/raw-http.ts'

const BASE = 'https://api.example.org'
const HSTS = /^max-age=\d{7,}/

let gateway: Gateway
let account: Account

before(async () => {
  gateway = await startGateway({ isInProcess: true })
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

  it('behind a trusted proxy, under an https: address, plain HTTP is sent to the same address under it, before anything else happens', async () => {
    const plain = ['X-Forwarded-Proto: http']
    const path = '/v1/call/weather/current?latitude=1&longitude=1'
    checkRedirect(await ask(url, path, [...plain, `X-Api-Key: ${account.test}`]), path)
    checkRedirect(await ask(url, '/v1/me', plain), '/v1/me')
    checkRedirect(await ask(url, '/nope?a=%20b', plain), '/nope?a=%20b')
    checkRedirect(await ask(url, '/v1/call/weather/%zz', plain), '/v1/call/weather/%zz')
    checkRedirect(await ask(url, '/v1/catalog', plain, 'DELETE'), '/v1/catalog')
    checkRedirect(
      await ask(url, '/v1/auth/login', [...plain, 'Content-Type: text/xml', 'Content-Length: 0'], 'POST'),
      '/v1/auth/login',
    )
    checkRedirect(await ask(url, '/v1/catalog'), '/v1/catalog')
  })

  it('behind a trusted proxy, under an https: address, never sends to another host', async () => {
    const targets = ['//evil.example/x', 'http://evil.example/v1/catalog', '/\\evil.example', '/@evil.example']
    for (const target of targets) {
      const { headers, text } = await ask(url, target, ['X-Forwarded-Proto: http', 'X-Forwarded-Host: evil.example'])
      assert.equal(new URL(headers.location ?? '').origin, BASE, text)
    }
  })

  it('behind a trusted proxy, under an https: address, HTTPS is served, with HSTS', async () => {
    const answer = await ask(url, '/v1/catalog', ['X-Forwarded-Proto: https'])
    assert.equal(answer.status, 200)
    assert.match(answer.headers['strict-transport-security'] ?? '', HSTS)
    const refused = await ask(url, '/v1/me', ['X-Forwarded-Proto: https'])
    assert.equal(refused.status, 401)
    assert.match(refused.headers['strict-transport-security'] ?? '', HSTS)
    assert.ok(JSON.parse(refused.body).docs.startsWith(`${BASE}/docs/errors#`))
  })

  it('behind a trusted proxy, under an https: address, an address that cannot be decoded is answered, not sent to itself', async () => {
    for (const schemes of [['https'], ['http, https'], ['http', 'https']]) {
      const forwarded = schemes.map((scheme) => `X-Forwarded-Proto: ${scheme}`)
      const answer = await ask(url, '/v1/call/weather/%zz', forwarded)
      assert.equal(answer.status, 401, answer.text)
      const { status, error } = JSON.parse(answer.body)
      assert.deepEqual([status, error.code], ['error', 'AUTH_REQUIRED'])
      assert.match(answer.headers['strict-transport-security'] ?? '', HSTS)
    }
  })
})

/** A node under an https: address that trusts no proxy. */
let untrusting: string

describe('the routes for machines beside a node', () => {
  it('the routes for machines beside a node answer over plain HTTP whatever BASE_URL says, on the port of the metrics too', async () => {
    const metricsPort = await freePort()
    const { url } = await gateway.startWebProcess({ BASE_URL: BASE, METRICS_PORT: String(metricsPort) })
    untrusting = url
    for (const target of ['/healthz', '/readyz']) {
      assert.equal((await ask(url, target)).status, 200)
      const { status, body } = await rawHttp(
        metricsPort,
        `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
      )
      assert.equal(status, 200, body)
    }
    checkRedirect(await ask(url, '/v1/catalog'), '/v1/catalog')
    await until(() => gateway.output.join('').includes('it redirects every request; set TRUST_PROXY'))
  })

  it('the routes for machines beside a node say that a node is not ready whose schema is missing or whose Redis is of no use, and why', async () => {
    const admin = new pg.Client({ connectionString: gateway.services.databaseUrl })
    await admin.connect()
    const name = `empty_${randomUUID().replaceAll('-', '')}`
    await admin.query(`create database ${name}`)
    const old = await startOldRedis()
    try {
      const databaseUrl = new URL(gateway.services.databaseUrl)
      databaseUrl.pathname = `/${name}`
      const environment = { DATABASE_URL: databaseUrl.href, REDIS_URL: old.url }
      const { url: empty, child } = await gateway.startWebProcess(environment)
      await until(async () => {
        const { problems = [] } = JSON.parse((await ask(empty, '/readyz')).body)
        return problems.length === 2
      })
      const { status, body } = await ask(empty, '/readyz')
      assert.equal(status, 503)
      assert.deepEqual(JSON.parse(body), {
        status: 'unavailable',
        postgres: false,
        redis: false,
        problems: [
          'the schema of the database is older than this version of the gateway: run the migrations',
          'Redis 6.2 is too old; 7.0 or newer is needed',
        ],
      })
      child.kill('SIGKILL')
      await once(child, 'exit')
    } finally {
      old.close()
      await admin.query(`drop database ${name} with (force)`)
      await admin.end()
    }
  })
})

/** Answers as a Redis 6.2 does if a client reads its version. */
async function startOldRedis(): Promise<{ url: string; close: () => void }> {
  const info = 'redis_version:6.2.14\r\nredis_mode:standalone\r\nloading:0\r\n'
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.on('data', (data) => {
      for (const command of String(data).match(/^\*\d+\r\n\$\d+\r\n\w+/gm) ?? []) {
        const isInfo = /info$/i.test(command)
        socket.write(isInfo ? `$${info.length}\r\n${info}\r\n` : '+OK\r\n')
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { url: `redis://127.0.0.1:${port}`, close: () => server.close() }
}

describe('without a trusted proxy', () => {
  it('without a trusted proxy, what a client says of its scheme does not count', async () => {
    checkRedirect(await ask(untrusting, '/v1/catalog', ['X-Forwarded-Proto: https']), '/v1/catalog')
    const foreign = await gateway.startWeb({ BASE_URL: BASE, TRUST_PROXY: '192.0.2.1' })
    for (const path of ['/v1/catalog', '/v1/call/weather/%zz']) {
      checkRedirect(await ask(foreign, path, ['X-Forwarded-Proto: https']), path)
    }
  })

  it('without a trusted proxy, nothing is redirected under an http: address, and there is no HSTS', async () => {
    const { status, headers } = await ask(gateway.url, '/v1/catalog', ['X-Forwarded-Proto: http'])
    assert.equal(status, 200)
    assert.equal(headers['strict-transport-security'], undefined)
  })
})

/** The serial number of the certificate that a new connection gets. */
async function serialOf(url: string): Promise<string> {
  const socket = connect({ port: portOf(url), host: '127.0.0.1', rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  const { serialNumber } = socket.getPeerCertificate()
  socket.destroy()
  return serialNumber
}

describe('with a certificate of its own', () => {
  let files: CertificateFiles
  let redirectPort: number
  let url: string
  before(async () => {
    files = await makeCertificate(gateway.services.folder, 'first')
    redirectPort = await freePort()
    const node = await gateway.startWebProcess({
      BASE_URL: BASE,
      TLS_CERT_FILE: files.certFile,
      TLS_KEY_FILE: files.keyFile,
      HTTP_REDIRECT_PORT: String(redirectPort),
      CLIENT_CONNECTIONS_MAX: '20',
    })
    url = node.url
  })

  it('with a certificate of its own, the plain listener keeps so many connections of a client as the node does twice', async () => {
    const sockets = Array.from({ length: 60 }, () =>
      connectPlain(redirectPort, '127.0.0.1').on('error', () => undefined),
    )
    try {
      await until(async () => sockets.filter((socket) => socket.closed).length >= 20)
      assert.equal(sockets.filter((socket) => socket.closed).length, 20)
    } finally {
      for (const socket of sockets) socket.destroy()
    }
  })

  it('with a certificate of its own, a node serves HTTPS, and a plain listener redirects to it', async () => {
    const ca = await readFile(files.certFile)
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
    // If plain HTTP arrives on the HTTPS port, the node closes the connection.
    assert.equal((await ask(url, '/v1/catalog')).status, Number.NaN)
  })

  it('with a certificate of its own, a node serves a replaced certificate to new connections, and keeps the old certificate if it cannot use the new certificate', async () => {
    const { certFile, keyFile } = files
    const first = await serialOf(url)
    const kept = connect({ port: portOf(url), host: '127.0.0.1', rejectUnauthorized: false })
    await once(kept, 'secureConnect')
    const second = await makeCertificate(gateway.services.folder, 'second')
    await copyFile(second.certFile, certFile)
    // The key does not fit the new certificate. Callers notice nothing, and the log says so.
    await until(() => gateway.output.join('').includes('TLS_KEY_FILE holds the key of another certificate'))
    assert.equal(await serialOf(url), first)
    await copyFile(second.keyFile, keyFile)
    await until(async () => (await serialOf(url)) !== first)
    kept.write('GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    assert.match(String((await once(kept, 'data'))[0]), /^HTTP\/1\.1 200 /)
    kept.destroy()
  })

  it('with a certificate of its own, that cannot be used the boot ends with one line that names the variable', async () => {
    await assert.rejects(
      gateway.startWebProcess({ BASE_URL: BASE, TLS_CERT_FILE: '/nowhere/cert.pem', TLS_KEY_FILE: '/nowhere/key.pem' }),
      /web: TLS_CERT_FILE names a file that cannot be read: \/nowhere\/cert\.pem\n/,
    )
  })
})

describe('a node whose port is taken', () => {
  it('a node whose port is taken ends with one sentence that names the variable', async () => {
    await assert.rejects(
      gateway.startWebProcess({ PORT: String(portOf(gateway.url)) }),
      (error) =>
        error instanceof Error &&
        error.message.includes(
          `web: PORT cannot be used: port ${portOf(gateway.url)} is in use. Set PORT to another port`,
        ) &&
        !error.message.includes('EADDRINUSE'),
    )
  })
})
