import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import type { Api } from '../../src/catalog/catalog.ts'
import { firstExampleCall } from '../../src/catalog/example-call.ts'
import { consoleUrl } from '../../src/config/operator-client.ts'
import type { Config } from '../../src/config.ts'
import { welcomeText } from '../../src/local/console-output.ts'
import type { DemoAccount } from '../../src/local/demo-account.ts'
import { reachabilityWords } from '../../src/local/reachability.ts'
import { formatLogLine } from '../../src/log.ts'

const entry = (members: object) => JSON.stringify({ level: 'info', time: 't', process: 'web-1', ...members })
const shown = (line: string, isVerbose = false) => {
  const text = formatLogLine('web-1', line, { isTerminal: true, isVerbose })
  return text === undefined ? undefined : stripVTControlCharacters(text)
}

describe('the lines of a terminal', () => {
  it('the lines of a terminal are calls and warnings, and every line if LOG_LEVEL is set', () => {
    const listening = entry({ msg: 'listening', port: 3000 })
    assert.equal(shown(listening), undefined)
    assert.equal(shown(listening, true), 'web-1    listening port=3000')
    const warning = entry({
      level: 'warn',
      msg: 'probe failed',
      slug: 'weather',
      err: { message: 'no', stack: 'at x' },
    })
    assert.equal(shown(warning), 'web-1    WARN probe failed slug=weather (no)')
    assert.equal(shown('Error: before there was a log'), 'web-1    Error: before there was a log')
  })

  it('the lines of a terminal say of a call what came of it, and why it failed', () => {
    const call = { msg: 'call', slug: 'weather', endpoint: '/current', ms: 31.4 }
    assert.equal(shown(entry({ ...call, status: 200, mode: 'test' })), 'web-1    weather/current 200 in 31 ms (test)')
    const failed = { ...call, status: 502, code: 'UPSTREAM_ERROR', reason: 'DNS: no such host' }
    assert.equal(shown(entry(failed)), 'web-1    weather/current 502 UPSTREAM_ERROR (DNS: no such host) in 31 ms')
  })

  it('the lines of a terminal are the JSON lines unchanged if there is no terminal', () => {
    const line = entry({ msg: 'listening' })
    const output = { isTerminal: false, isVerbose: false }
    assert.equal(formatLogLine('web-1', line, output), line)
    assert.equal(formatLogLine('web-1', 'text', output), 'web-1: text')
  })
})

describe('the welcome', () => {
  const welcome = (opsHost: string, demo?: DemoAccount, contactRules: string[] = []) => {
    const http = { baseUrl: 'http://localhost:3000', opsHost } as Config['http']
    return welcomeText({
      ...{
        config: { http, dataDir: '/data' } as Config,
        consoleUrl: consoleUrl(opsHost, 3001),
        operatorToken: 'TOKEN',
      },
      ...{ demo, examplePath: '/x', contactRules, reachable: undefined, isBrief: false },
    })
  }

  it('the welcome links to the console, and has the operator token if this machine alone reaches it', () => {
    for (const [opsHost, address, isLocal] of [
      ['127.0.0.1', '127.0.0.1', true],
      ['localhost', 'localhost', true],
      ['::1', '[::1]', true],
      ['0.0.0.0', '127.0.0.1', false],
      ['::', '127.0.0.1', false],
      ['10.0.0.1', '10.0.0.1', false],
      ['fd00::1', '[fd00::1]', false],
      ['localhost.example.org', 'localhost.example.org', false],
    ] as const) {
      const text = welcome(opsHost)
      assert.ok(text.includes(`  Console      http://${address}:3001\n`), opsHost)
      assert.equal(text.includes('TOKEN\n'), isLocal, opsHost)
      if (!isLocal) assert.ok(text.includes('token: OPERATOR_TOKEN in /data/secrets.json'), opsHost)
    }
  })

  it('the welcome names the higher cap that CONTACT would give only if CONTACT is not set', () => {
    assert.doesNotMatch(welcome('::1'), /CONTACT/)
    const words = 'encyclopedia: Wikimedia allows 10 requests a minute'
    assert.match(welcome('::1', undefined, [words]), /CONTACT .*is not set:\n {4}encyclopedia: Wikimedia allows 10/)
  })

  it('the welcome has the password of the demo account, or explains how to get a new password if it was changed', () => {
    const demo = { email: 'demo@localhost', live: 'LIVE', test: 'TEST' }
    assert.match(welcome('::1', { ...demo, password: 'PASSWORD' }), /log in as demo@localhost with PASSWORD\n/)
    assert.match(
      welcome('::1', { ...demo, password: undefined }),
      /log in as demo@localhost, whose password was changed \(a new one: npm run operator -- new-password demo@localhost\)\n/,
    )
  })
})

describe('the call that a newcomer makes first', () => {
  const api = (slug: string, ...effects: ('read' | 'once')[]) =>
    ({
      slug,
      endpoints: new Map(
        effects.map((effect, index) => [
          `/${index}`,
          { path: `/${index}`, method: effect === 'read' ? 'GET' : 'POST' },
        ]),
      ),
    }) as unknown as Api

  it('the example of a first call is a call of the weather, otherwise of the first API that reads, otherwise there is no example', () => {
    const first = (...apis: Api[]) => {
      const found = firstExampleCall(apis)
      return found && `${found.api.slug}${found.endpoint.path}`
    }
    assert.equal(first(api('stock', 'read'), api('weather', 'read')), 'weather/0')
    assert.equal(first(api('orders', 'once'), api('stock', 'once', 'read'), api('trivia', 'read')), 'stock/1')
    assert.equal(first(api('orders', 'once')), undefined)
  })
})

describe('the sentence on what is reachable', () => {
  const at = '2026-01-01T00:00:00.000Z'
  type Rows = Parameters<typeof reachabilityWords>[0]['upstreams']
  const row = (failure: string | null, checkedAt: string | null = at) =>
    ({
      enabled: true,
      health: {
        checkedAt,
        lastFailure: failure && { at, code: 'UPSTREAM_ERROR', words: failure, network: failure.startsWith('DNS') },
      },
    }) as Rows[number]
  const words = (...upstreams: Rows) => reachabilityWords({ upstreams }, Date.parse(at))

  it('the sentence on what is reachable counts the upstreams that answered, and finds that there is no network', () => {
    assert.equal(words(row(null), row(null)), '2 of 2 enabled upstreams reachable.')
    assert.equal(
      words(row(null), row('HTTP 500 in 87 ms')),
      '1 of 2 enabled upstreams reachable; the others are in the console.',
    )
    const none = '0 of 2 enabled upstreams reachable (DNS: no such host). No network? Test keys work without it.'
    assert.equal(words(row('DNS: no such host'), row('DNS: no such host')), none)
  })

  it('the sentence on what is reachable counts only attempts since the start, so a network that is back does not look like a lost network', () => {
    const before = row('DNS: no such host', '2025-12-31T00:00:00.000Z')
    assert.equal(words(before, row(null)), '1 of the 1 upstreams tried so far are reachable.')
    assert.equal(words(before), undefined)
  })

  it('the sentence on what is reachable is left out while no upstream was tried', () => {
    assert.equal(words(row(null, null)), undefined)
  })
})
