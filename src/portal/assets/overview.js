import { failureCard, showAccount } from './account-view.js'
import { ApiError, api, apiAll } from './api.js'
import { el, moment } from './dom.js'
import { usageSection } from './usage.js'
import { verificationNotice } from './verification.js'
import { callsOf } from './words.js'

/** The account, its plan, and its calls. */
export function startOverview(view) {
  return showAccount(view, async () => {
    const me = await api('/v1/me')
    const parts = [api('/v1/billing/status'), apiAll('/v1/keys'), api('/v1/connections')].map(part)
    const [notice, plan, keys, connections] = await Promise.all([verificationNotice(view), ...parts])
    return [
      el('p', {}, 'Logged in as ', el('strong', {}, me.email), '.'),
      notice,
      keys.keys?.length === 0 &&
        el(
          'p',
          { class: 'notice' },
          'Next: ',
          el('a', { href: '/account/keys' }, 'make your first key'),
          ' and try a call.',
        ),
      el('section', { class: 'card' }, el('h2', {}, 'Plan'), plan.error ? failureCard(plan.error) : planFacts(plan)),
      usageSection({ ...keys, ...connections }),
    ]
  })
}

/** One part of the page. If it fails, the other parts are still shown. */
async function part(asked) {
  try {
    return await asked
  } catch (error) {
    if (!(error instanceof ApiError) || error.status === 401) throw error
    return { error }
  }
}

const number = new Intl.NumberFormat()

function planFacts({ plan, limits, usage }) {
  const facts = [
    ['Plan', plan],
    ['Per minute', callsOf(limits.perMinute)],
    ['Concurrent calls', number.format(limits.inFlight)],
    ['This month', `${number.format(usage.used)} of ${callsOf(limits.perMonth)}`],
    ['Resets', moment(usage.resetsAt)],
  ]
  const meter = el('meter', {
    min: 0,
    max: limits.perMonth,
    value: usage.used,
    high: limits.perMonth * 0.9,
    'aria-label': 'Used of the month',
  })
  return el(
    'div',
    {},
    usage.used >= limits.perMonth * NEARLY_USED &&
      el('p', { class: 'notice', role: 'note' }, usageWarning(usage.used, limits.perMonth)),
    el(
      'dl',
      { class: 'facts' },
      ...facts.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value))),
    ),
    meter,
  )
}

/** From this share of the monthly limit on, the page warns. */
const NEARLY_USED = 0.8

function usageWarning(used, perMonth) {
  if (used >= perMonth) return 'You have used all calls of this month. Live calls are refused until the month resets.'
  return `${Math.floor((used / perMonth) * 100)} % of this month’s calls used.`
}
