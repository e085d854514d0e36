import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { type Api, applySettings, loadCatalog } from '../../src/catalog/catalog.ts'
import { viewHealth } from '../../src/health/health-view.ts'
import { forPeople } from '../../src/portal/assets/words.js'
import type { HealthChangeView } from '../../src/portal/catalog-view.ts'
import { changeWords, conditionOf } from '../../src/portal/condition.ts'
import { healthOfTheDay } from '../../src/portal/pages/api-health.ts'

const NOW = Date.parse('2026-11-21T12:00:00Z')
const HOUR_MS = 3_600_000

describe('the condition of an API', () => {
  let weather: Api
  let news: Api
  before(async () => {
    const catalog = await loadCatalog(new Map())
    weather = catalog.get('weather') ?? assert.fail()
    news = catalog.get('news') ?? assert.fail()
  })
  const view = (hash: Record<string, string>) => viewHealth(hash, NOW)
  const past = (history: HealthChangeView[], lastChange = history[0] ?? null) => ({ history, lastChange })

  it('the condition of an API is not checked before the first call or probe, and not enabled without the operator’s key', () => {
    assert.equal(conditionOf(weather, view({})).word, 'Not checked')
    assert.equal(conditionOf(news, view({ probeAt: String(NOW) })).word, 'Not enabled')
    assert.equal(conditionOf(weather, view({ probeAt: String(NOW) })).word, 'Healthy')
  })

  it('the condition of an API tells what callers get while an API is down or paused', () => {
    const down = conditionOf(
      weather,
      view({
        state: 'Down',
        open: '1',
        since: '1',
        cause: 'failures-in-a-row',
        failedAt: '1',
        failedWords: 'DNS: no such host',
      }),
    )
    assert.equal(down.word, 'Down')
    assert.match(down.reason, /in a row failed; the last failure: DNS: no such host\.$/)
    assert.match(down.effect, /UPSTREAM_UNAVAILABLE.* from 30 seconds to 5 minutes\. Stored answers.*Test calls work/)
    const byScore = conditionOf(weather, view({ state: 'Down', open: '0', since: '1', cause: 'score' }))
    assert.equal(byScore.word, 'Down')
    assert.match(byScore.effect, /^Live calls are still sent to the source, but many of them fail/)
    applySettings(weather, { pausedMode: 'refuse' })
    assert.match(conditionOf(weather, view({})).effect, /refused with API_PAUSED/)
    applySettings(weather, {})
  })

  it('the condition of an API is that its source limits the gateway, until when, unless the source is down anyway', () => {
    const limited = { probeAt: String(NOW), limitedUntil: String(NOW + 90_000) }
    const { word, reason, effect } = conditionOf(weather, view(limited))
    assert.equal(word, 'Limited')
    assert.equal(reason, 'The source limits this gateway until 12:01:30 UTC.')
    assert.match(
      effect,
      /^Live calls wait until the limit ends; a call that would wait too long is refused, and Retry-After/,
    )
    assert.match(effect, /Stored answers.*Test calls work/)
    assert.equal(conditionOf(weather, view({ ...limited, state: 'Degraded', since: '1' })).word, 'Limited')
    assert.equal(conditionOf(weather, view({ ...limited, state: 'Down', open: '1', since: '1' })).word, 'Down')
    assert.equal(conditionOf(weather, view({ ...limited, limitedUntil: String(NOW - 1) })).word, 'Healthy')
  })

  it('the condition of an API promises test calls only on plans that include the API', () => {
    assert.match(conditionOf(news, view({})).effect, /API_NOT_ENABLED\. Test calls work from the Pro plan on\.$/)
    assert.match(
      forPeople({ code: 'PLAN_UPGRADE_REQUIRED', hint: 'Upgrade the plan. upgrade_to=pro' }),
      /the Pro plan, also for test data/,
    )
  })

  it('the condition of an API says of an improvement that calls succeed again, and of a deterioration why it happened', () => {
    const change = { cause: 'score', code: 'UPSTREAM_TIMEOUT' }
    assert.equal(changeWords({ ...change, from: 'Degraded', to: 'Healthy' }), 'Calls succeed again.')
    assert.equal(changeWords({ ...change, from: 'Down', to: 'Degraded' }), 'Calls succeed again.')
    assert.match(
      changeWords({ ...change, from: 'Healthy', to: 'Degraded' }),
      /^Too many recent calls.*did not answer in time\.$/,
    )
    assert.equal(
      changeWords({ cause: 'score', code: 'UPSTREAM_ERROR', from: 'Healthy', to: 'Degraded' }),
      'Too many recent calls failed or were slow.',
    )
  })

  it('the condition of an API says that the changes of the day are not known if nobody knows them', () => {
    const { text } = healthOfTheDay(conditionOf(weather, view({ state: 'Healthy', since: '1' })), undefined, NOW)
    assert.match(text, /are not available/)
    assert.doesNotMatch(text, /No change/)
  })

  it('the condition of an API without a known state does not call the API new, and still shows its changes', () => {
    const unknown = conditionOf(weather, view({}))
    assert.match(healthOfTheDay(unknown, past([]), NOW).text, /^<p>Nothing is known of its state at the moment\.<\/p>$/)
    const change = { at: new Date(NOW - 60_000).toISOString(), from: 'Healthy', to: 'Down', cause: 'score', code: null }
    const { text } = healthOfTheDay(unknown, past([change]), NOW)
    assert.match(text, /Healthy, then Down.*Nothing is known of its state at the moment\. The latest changes:/s)
  })

  it('the condition of an API draws the last minute of the day too', () => {
    const change = { at: new Date(NOW - 1_000).toISOString(), from: 'Healthy', to: 'Down', cause: 'score', code: null }
    const { text } = healthOfTheDay(conditionOf(weather, view({ state: 'Down', since: '1' })), past([change]), NOW)
    const [, x = ''] = /class="down" x="(\d+)"/.exec(text) ?? []
    assert.ok(Number(x) < 720)
    assert.match(text, /Healthy, then Down/)
  })

  it('the condition of an API shows no health of a time before its first good check', () => {
    const label = (hash: Record<string, string>, history: HealthChangeView[]) => {
      const { text } = healthOfTheDay(
        conditionOf(weather, view({ probeAt: String(NOW), at: String(NOW), ...hash })),
        past(history),
        NOW,
      )
      return /aria-label="Health of the last 24 hours: ([^"]*)"/.exec(text)?.[1]
    }
    const at = (hours: number) => new Date(NOW - hours * HOUR_MS).toISOString()
    const toDown = {
      at: at(2),
      from: 'Healthy',
      to: 'Down',
      cause: 'failures-in-a-row',
      code: 'UPSTREAM_TIMEOUT',
    } as const
    const okAt = String(NOW - HOUR_MS)
    const down = { state: 'Down', since: String(NOW - 2 * HOUR_MS) }
    assert.equal(label(down, [toDown]), 'Not checked, then Down')
    assert.equal(label({}, []), 'Not checked')
    assert.equal(label({ okAt, firstOkAt: okAt }, []), 'Not checked, then Healthy')
    assert.equal(label({ okAt, firstOkAt: String(NOW - 30 * HOUR_MS) }, []), 'Healthy')
    const firstOkAt = String(NOW - 5 * HOUR_MS)
    assert.equal(label({ ...down, okAt, firstOkAt }, [toDown]), 'Not checked, then Healthy, then Down')
    // A row as the version before writes it.
    assert.equal(label({ ...down, okAt }, [toDown]), 'Healthy, then Down')
  })

  it('the condition of an API takes an earlier change as a check if Redis has forgotten the first check', () => {
    const at = (hours: number) => new Date(NOW - hours * HOUR_MS).toISOString()
    const okAt = String(NOW - HOUR_MS)
    const healthy = conditionOf(weather, view({ at: okAt, okAt, firstOkAt: okAt, probeAt: okAt }))
    const change = { at: at(30), from: 'Degraded', to: 'Healthy', cause: 'score', code: null }
    const known = healthOfTheDay(healthy, past([], change), NOW).text
    assert.match(known, /24 hours: Healthy"[\s\S]*No change in the last 24 hours\./)
    // The state in between is not known, or there is nothing to go by.
    for (const lastChange of [{ ...change, from: 'Healthy', to: 'Down' }, null]) {
      const { text } = healthOfTheDay(healthy, past([], lastChange), NOW)
      assert.match(text, /Not checked, then Healthy"[\s\S]*No change since the first check that is known\./)
    }
  })
})
