import { escapeHtml } from '../../browser/html.js'
import { causeWords, countOf, isRecovery, megabytes, percent, span } from '../../fleet/words.js'
import { pill, table } from './parts.js'
import { rowCells } from './rows.js'

/** What the overview page shows of a snapshot, as HTML by place. The server fills the page with it, the browser renews it. */
export function renderPlaces(snapshot) {
  const places = {
    headline: headline(snapshot),
    tiles: tiles(snapshot),
    attention: attention(snapshot),
    errors: errors(snapshot),
    accounts: accounts(snapshot),
    processes: processes(snapshot),
    stores: stores(snapshot),
    changes: changes(snapshot),
    audit: audit(snapshot),
  }
  for (const row of snapshot.upstreams) {
    for (const [cell, html] of Object.entries(rowCells(row, snapshot.at))) places[`${row.slug} ${cell}`] = html
  }
  return places
}

const calm = (text) => `<p class="calm">${text}</p>`
const UNKNOWN = calm('Unknown: Redis does not answer.')

/** How many enabled APIs are in which state; undefined while that is not known. */
function countStates(upstreams) {
  const enabled = upstreams.filter((row) => row.enabled)
  if (enabled.some(({ health }) => health === null)) return undefined
  const of = (status) => enabled.filter(({ health }) => health.checkedAt !== null && health.status === status).length
  const unchecked = enabled.filter(({ health }) => health.checkedAt === null).length
  return { enabled: enabled.length, unchecked, healthy: of('Healthy'), degraded: of('Degraded'), down: of('Down') }
}

function headline({ problems, upstreams, processes: alive, stores: { redis, postgres } }) {
  if (!redis) return `${pill('Down')} Redis does not answer: calls are refused.`
  if (!postgres) return `${pill('Degraded')} Postgres does not answer: only keys in use work.`
  // Of the whole service: all APIs may be healthy while nobody reaches them.
  const gravest = problems.find(({ rank, slug }) => rank === 0 && slug === null)
  const trouble = gravest && `${pill('Down', gravest.label)} ${escapeHtml(gravest.text)}.`
  const states = countStates(upstreams)
  if (!states || !alive) return trouble ?? `${pill('Unknown')} The state of the APIs is not known.`
  if (!alive.some(({ kind }) => kind === 'worker')) return `${pill('Down')} No worker is alive: calls wait.`
  if (trouble) return trouble
  const { enabled, unchecked, healthy, degraded, down } = states
  const yet = unchecked > 0 ? `, ${unchecked} not checked yet` : ''
  if (down > 0)
    return `${pill('Down')} ${down} of ${enabled} APIs down${degraded > 0 ? `, ${degraded} degraded` : ''}${yet}.`
  if (degraded > 0) return `${pill('Degraded')} ${degraded} of ${enabled} APIs degraded${yet}.`
  if (unchecked > 0) return `${pill('Healthy')} ${healthy} of ${enabled} APIs are healthy${yet}.`
  return `${pill('Healthy')} All ${enabled} enabled APIs are healthy.`
}

function tile(name, value, detail) {
  return `<div class="tile"><dt>${name}</dt><dd>${value}<small>${detail}</small></dd></div>`
}

function tiles({ upstreams, lastHour, processes: alive }) {
  const unknown = (name) => tile(name, '?', 'unknown')
  const names = ['Calls a minute', 'Failing (5xx)', 'Waiting', 'Under way', 'Workers', 'API nodes']
  if (!lastHour || !alive) return names.map(unknown).join('')
  const sum = (values) => values.reduce((total, value) => total + value, 0)
  const [answered, refused, failed] = ['answered', 'refused', 'failed'].map((name) => lastHour[name].at(-2) ?? 0)
  const all = answered + refused + failed
  const hour = sum(lastHour.answered) + sum(lastHour.refused) + sum(lastHour.failed)
  const waiting = sum(upstreams.map((row) => row.queue?.waiting ?? 0))
  const active = sum(upstreams.map((row) => row.queue?.active ?? 0))
  const oldest = Math.max(0, ...upstreams.map((row) => row.queue?.oldestMs ?? 0))
  const of = (kind) => alive.filter((process) => process.kind === kind)
  const busiest = (kind) =>
    of(kind).length === 0 ? 'none' : `busiest ${percent(Math.max(...of(kind).map((process) => process.busy)))}`
  return [
    tile('Calls a minute', String(all), `${hour} in the last hour`),
    tile(
      'Failing (5xx)',
      all === 0 ? '–' : percent(failed / all),
      all === 0 ? 'no calls in the last minute' : `${percent(refused / all)} refused (4xx)`,
    ),
    tile('Waiting', String(waiting), waiting > 0 ? `oldest ${span(oldest)}` : 'nothing waits'),
    tile('Under way', String(active), 'at workers'),
    tile('Workers', String(of('worker').length), busiest('worker')),
    tile('API nodes', String(of('web').length), busiest('web')),
  ].join('')
}

/** Above so many lines only the first are shown, the gravest: an outage of the network is one line and all APIs. */
const LINES_MAX = 8
const LINES_FIRST = 6

function attention({ problems, upstreams }) {
  if (problems.length === 0) {
    const unchecked = countStates(upstreams)?.unchecked ?? 0
    return calm(
      unchecked > 0
        ? `Nothing needs you so far; ${countOf(unchecked, 'API')} ${unchecked === 1 ? 'is' : 'are'} not checked yet.`
        : 'Nothing needs you.',
    )
  }
  const items = problems.map(({ rank, label, slug, text, callers, todo }) => {
    const state = rank === 0 ? 'Down' : label === 'Paused' ? 'Paused' : 'Degraded'
    const linked = slug === null ? escapeHtml(text) : linkSlug(escapeHtml(text), escapeHtml(slug))
    const action =
      label === 'Paused'
        ? ['resume', 'Resume']
        : label === 'Down' || label === 'Degraded'
          ? ['probe', 'Probe']
          : undefined
    const button = action
      ? `<button type="button" data-action="${action[0]}" data-slug="${escapeHtml(slug)}" aria-label="${action[1]} ${escapeHtml(slug)} now">${action[1]}</button>`
      : ''
    return `<li class="rank-${rank}"><div>${pill(state, label)} ${linked}<small>${escapeHtml(callers)} <b>To do:</b> ${escapeHtml(todo)}</small></div>${button}</li>`
  })
  const list = (some) => `<ul class="attention">${some.join('')}</ul>`
  if (items.length <= LINES_MAX) return list(items)
  const rest = items.slice(LINES_FIRST)
  return `${list(items.slice(0, LINES_FIRST))}<details class="more"><summary>${countOf(rest.length, 'more problem')}</summary>${list(rest)}</details>`
}

function linkSlug(text, slug) {
  return text.startsWith(slug) ? `<a href="#${slug}">${slug}</a>${text.slice(slug.length)}` : text
}

function errors({ errors: rows }) {
  if (rows === null) return UNKNOWN
  if (rows.length === 0) return calm('No error in the last hour.')
  return table(
    'Errors by API',
    ['API', 'Code', 'Calls'],
    rows.map(({ slug, code, count }) => [escapeHtml(slug), `<code>${escapeHtml(code)}</code>`, String(count)]),
  )
}

function accounts({ accounts: rows }) {
  if (rows === null) return UNKNOWN
  if (rows.length === 0) return calm('No calls in the last hour.')
  return table(
    'Accounts with most calls',
    ['Account', 'Calls', '429', 'Other 4xx', '5xx'],
    rows.map(({ id, email, calls, limited, refused, failed }) => [
      email === null ? `<code>${escapeHtml(id.slice(0, 8))}…</code>` : escapeHtml(email),
      String(calls),
      String(limited),
      String(refused),
      failed > 0 ? `<b class="bad">${failed}</b>` : '0',
    ]),
  )
}

function processes({ processes: rows }) {
  if (rows === null) return UNKNOWN
  return table(
    'Processes',
    ['Process', 'Up', 'Busy', 'Loop delay p99', 'Memory', 'In flight'],
    rows.map((row) => [
      `${escapeHtml(row.kind)}<small>${escapeHtml(row.host)} · ${row.pid}</small>`,
      span(row.upMs),
      percent(row.busy),
      `${row.lagMs.toFixed(0)} ms`,
      megabytes(row.memoryBytes),
      String(row.inFlight),
    ]),
  )
}

function stores({ stores: { redis, postgres } }) {
  const away = `<b class="bad">does not answer</b>`
  const of = (bytes) => (bytes > 0 ? ` of ${megabytes(bytes)}` : '')
  return table(
    'Stores',
    ['Store', 'Latency', 'Memory or size', 'Load'],
    [
      redis
        ? [
            'Redis',
            `${redis.latencyMs.toFixed(1)} ms`,
            `${megabytes(redis.usedBytes)}${of(redis.maxBytes)}`,
            `${redis.opsPerSecond} commands/s, ${redis.clients} clients`,
          ]
        : ['Redis', away, '–', '–'],
      postgres
        ? [
            'Postgres',
            `${postgres.latencyMs.toFixed(1)} ms`,
            megabytes(postgres.bytes),
            `${postgres.connections} connections`,
          ]
        : ['Postgres', away, '–', '–'],
    ],
  )
}

function changes({ changes: rows, at }) {
  if (rows === null) return calm('Unknown: Postgres does not answer.')
  if (rows.length === 0) return calm('No change of health yet.')
  const items = rows.map(
    ({ slug, from, to, cause, code, score, at: when }) =>
      `<li>${pill(to)} <a href="#${escapeHtml(slug)}">${escapeHtml(slug)}</a> ${escapeHtml(causeWords({ cause, from, to }))}${code && !isRecovery({ from, to }) ? `, ${escapeHtml(code)}` : ''}, score ${score}<small>${span(Math.max(0, at - when))} ago</small></li>`,
  )
  return `<ol class="changes">${items.join('')}</ol>`
}

function audit({ audit: rows, at }) {
  if (rows === null) return calm('Unknown: Postgres does not answer.')
  if (rows.length === 0) return calm('No operator has changed anything yet.')
  const items = rows.map(
    ({ action, subject, actor, at: when }) =>
      `<li><b>${escapeHtml(action)}</b> ${escapeHtml(subject)}<small>${escapeHtml(actor)}, ${span(Math.max(0, at - when))} ago</small></li>`,
  )
  return `<ol class="changes">${items.join('')}</ol>`
}
