import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { parse, stringify } from 'yaml'
import { isOfUser, operate } from '../../src/operator/commands.ts'
import { type Gateway, startGateway } from '../support/gateway.ts'

const FILE = `upstreams:
  weather: { caps: { concurrency: 3, rates: [{ max: 7, seconds: 1 }] }, tierRequired: pro }
  currency: { paused: refuse }
  news: { enabled: true, key: { env: NEWS_KEY } }
`

describe('operator apply', () => {
  let gateway: Gateway
  let url = ''
  before(async () => {
    gateway = await startGateway({ isInProcess: true, workers: 0 })
    url = await gateway.startConsole()
  })
  after(() => gateway.stop())

  async function apply(text: string, ...options: string[]): Promise<{ code: number; output: string }> {
    const file = join(gateway.services.folder, 'gateway.yaml')
    await writeFile(file, text)
    return await operator('apply', file, ...options)
  }

  async function operator(...words: string[]): Promise<{ code: number; output: string }> {
    const environment = { ...gateway.environment, NEWS_KEY: 'secret-of-news' }
    try {
      const { code, text } = await operate([...words, '--url', url], environment)
      return { code, output: text }
    } catch (error) {
      assert.ok(isOfUser(error), String(error))
      return { code: 1, output: error.message }
    }
  }

  const read = async (path: string) => {
    const headers = { authorization: `Bearer ${gateway.environment.OPERATOR_TOKEN}` }
    return Object(await (await fetch(`${url}${path}`, { headers })).json())
  }
  const settingsOf = async (slug: string) =>
    (await read('/v1/operator/upstreams')).upstreams.find((upstream: { slug: string }) => upstream.slug === slug)

  it('operator apply prints the difference, makes all changes as one entry of the audit log, and then finds no difference', async () => {
    const checked = await apply(FILE, '--check')
    assert.equal(checked.code, 2, checked.output)
    assert.match(checked.output, /weather\s+tierRequired\s+null\s+"pro"/)
    assert.match(checked.output, /Nothing was changed/)
    assert.equal((await settingsOf('weather')).tierRequired, 'developer')

    const applied = await apply(FILE)
    assert.equal(applied.code, 0, applied.output)
    assert.doesNotMatch(applied.output, /secret-of-news/)
    assert.equal((await settingsOf('weather')).tierRequired, 'pro')
    assert.deepEqual((await settingsOf('weather')).caps, { concurrency: 3, rates: [{ max: 7, seconds: 1 }] })
    assert.equal((await settingsOf('news')).enabled, true)
    const { records } = await read('/v1/operator/audit?limit=10')
    const acts = records.filter(({ action }: { action: string }) => action === 'settings.apply')
    assert.equal(acts.length, 1)
    assert.deepEqual(Object.keys(acts[0].after).sort(), ['currency', 'news', 'weather'])
    assert.doesNotMatch(JSON.stringify(records), /secret-of-news/)

    const again = await apply(FILE, '--check')
    assert.deepEqual([again.code, again.output.trim()], [0, 'The settings already have these values.'])
    assert.equal((await apply(FILE)).code, 0)
    assert.equal((await read('/v1/operator/audit?limit=10')).records.length, records.length)
  })

  it('operator export writes the settings that operators made, and applying the export changes nothing here and restores them in another gateway', async () => {
    const { code, output } = await operator('export')
    assert.equal(code, 0, output)
    assert.doesNotMatch(output, /secret-of-news/)
    assert.match(output, /^# Keys are not exported: news\./)
    const expected = { ...parse(FILE).upstreams, news: { enabled: true } }
    assert.deepEqual(parse(output).upstreams, expected)
    assert.deepEqual(Object(JSON.parse((await operator('export', '--json')).output)).upstreams, expected)
    const unchanged = await apply(output, '--check')
    assert.deepEqual([unchanged.code, unchanged.output.trim()], [0, 'The settings already have these values.'])

    const cleared = Object.entries(expected).map(([slug, settings]) => [
      slug,
      Object.fromEntries(Object.keys(Object(settings)).map((member) => [member, null])),
    ])
    assert.equal((await apply(stringify({ upstreams: Object.fromEntries(cleared) }))).code, 0)
    assert.deepEqual(parse((await operator('export')).output), { upstreams: {} })
    assert.equal((await apply('upstreams: {}\n')).code, 0)
    assert.equal((await apply(output)).code, 0)
    assert.equal((await operator('export')).output, output)
  })

  it('operator apply changes nothing when one of the settings is wrong, and says where', async () => {
    const wrong: [string, RegExp][] = [
      ['upstreams:\n  weather: { tierRequired: developer }\n  wether: { enabled: true }\n', /did you mean weather/],
      ['upstreams:\n  weather: { tier: pro }\n', /gateway\.yaml:2 \/upstreams\/weather\/tier: /],
    ]
    for (const [text, expected] of wrong) {
      for (const options of [[], ['--check']]) {
        const { code, output } = await apply(text, ...options)
        assert.equal(code, 1, output)
        assert.match(output, expected)
      }
    }
    assert.equal((await settingsOf('weather')).tierRequired, 'pro')
  })
})
