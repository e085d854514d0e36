import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { type Api, applySettings, loadCatalog } from '../../src/catalog/catalog.ts'
import { viewHealth } from '../../src/health/health-view.ts'
import { conditionOf } from '../../src/portal/condition.ts'
import { healthOfTheDay } from '../../src/portal/pages/api-health.ts'

const NOW = Date.parse('2026-11-21T12:00:00Z')

describe('the condition of an API', () => {
  let weather: Api
  let news: Api
  before(async () => {
    const catalog = await loadCatalog(new Map())
    weather = catalog.get('weather') ?? assert.fail()
    news = catalog.get('news') ?? assert.fail()
  })
  const view = (hash: Record<string, string>) => viewHealth(hash, NOW)

  it('is not checked before the first call or probe, and not enabled without the operator’s key', () => {
    assert.equal(conditionOf(weather, view({})).word, 'Not checked')
    assert.equal(conditionOf(news, view({ probeAt: String(NOW) })).word, 'Not enabled')
    assert.equal(conditionOf(weather, view({ probeAt: String(NOW) })).word, 'Healthy')
  })

  it('tells what callers get while an API is down or paused', () => {
    const down = conditionOf(
      weather,
      view({ state: 'Down', since: '1', cause: 'failures-in-a-row', lastCode: 'UPSTREAM_TIMEOUT' }),
    )
    assert.equal(down.word, 'Down')
    assert.match(down.reason, /in a row failed; the last failure: The upstream API did not answer in time/)
    assert.match(down.effect, /UPSTREAM_UNAVAILABLE.*Stored answers.*Test calls work/)
    applySettings(weather, { pausedMode: 'refuse' })
    assert.match(conditionOf(weather, view({})).effect, /refused with API_PAUSED/)
    applySettings(weather, {})
  })

  it('draws the last minute of the day too', () => {
    const change = { at: new Date(NOW - 1_000).toISOString(), from: 'Healthy', to: 'Down', cause: 'score', code: null }
    const { text } = healthOfTheDay(conditionOf(weather, view({ state: 'Down', since: '1' })), [change], NOW)
    const [, x = ''] = /class="down" x="(\d+)"/.exec(text) ?? []
    assert.ok(Number(x) < 720)
    assert.match(text, /Healthy, then Down/)
  })
})
