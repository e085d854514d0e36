import { failureCard, showAccount } from './account-view.js'
import { ApiError, api } from './api.js'
import { usageChart } from './chart.js'
import { el, moment } from './dom.js'

/** Who is logged in, the plan, and what was called. */
export function startOverview(view) {
  return showAccount(view, async () => {
    const me = await api('/v1/me')
    const [plan, usage, keys] = await Promise.all([
      part('/v1/billing/status'),
      part('/v1/usage?groupBy=day'),
      part('/v1/keys'),
    ])
    return [
      el('p', {}, 'Logged in as ', el('strong', {}, me.email), '.'),
      keys.keys?.length === 0 &&
        el(
          'p',
          { class: 'notice' },
          'Next: ',
          el('a', { href: '/account/keys' }, 'make your first key'),
          ' and try a call.',
        ),
      el('section', { class: 'card' }, el('h2', {}, 'Plan'), plan.error ? failureCard(plan.error) : planFacts(plan)),
      el(
        'section',
        { class: 'card' },
        el('h2', {}, 'Calls of the last 30 days'),
        usage.error ? failureCard(usage.error) : usageChart(usage),
      ),
    ]
  })
}

/** One part of the page: where it fails, the others are still shown. */
async function part(path) {
  try {
    return await api(path)
  } catch (error) {
    if (!(error instanceof ApiError) || error.status === 401) throw error
    return { error }
  }
}

const number = new Intl.NumberFormat()

function planFacts({ plan, tier, limits, usage }) {
  const facts = [
    ['Plan', `${plan} (${tier})`],
    ['A minute', `${number.format(limits.perMinute)} calls`],
    ['At once', `${number.format(limits.inFlight)} calls`],
    ['This month', `${number.format(usage.used)} of ${number.format(limits.perMonth)} calls`],
    ['Counts anew', moment(usage.resetsAt)],
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
    el(
      'dl',
      { class: 'facts' },
      ...facts.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value))),
    ),
    meter,
  )
}
