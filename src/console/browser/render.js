import { escapeHtml } from '../../browser/html.js'
import { briefSpan, causeWords, countOf, isRecovery, megabytes, percent, span, stateOf } from '../../fleet/words.js'
import { pill, table } from './parts.js'
import { OVERVIEW_COLUMNS, rowCells } from './rows.js'

/**
 * The parts of the overview that show a snapshot, as HTML by place. The server renders the page
 * with them, and the browser updates it with them.
 *
 * @param {import('../../fleet/snapshot.ts').Snapshot} snapshot
 * @returns {Record<string, string>}
 */
export function renderPlaces(snapshot) {
  /** @type {Record<string, string>} */
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
    const cells = rowCells(row, snapshot.at)
    for (const column of OVERVIEW_COLUMNS) places[`${row.slug} ${column}`] = cells[column]
  }
  return places
}

const calm = (text) => `<p class="calm">${text}</p>`
const UNKNOWN = calm('Unknown: Redis does not answer.')

function headline({ headline: { state, label, text } }) {
  return `${pill(state, label)} ${escapeHtml(text)}`
}

function tile(name, value, detail) {
  return `<div class="tile"><dt>${name}</dt><dd>${value}<small>${detail}</small></dd></div>`
}

function tiles({ upstreams, lastMinute, lastHour, processes: alive }) {
  const unknown = (name) => tile(name, '?', 'unknown')
  const names = ['Calls, last 60 s', 'Failing (5xx), last 60 s', 'Waiting', 'Under way', 'Workers', 'API nodes']
  if (!lastMinute || !lastHour || !alive) return names.map(unknown).join('')
  const sum = (values) => values.reduce((total, value) => total + value, 0)
  const { answered, refused, failed } = lastMinute
  const all = answered + refused + failed
  const hour = sum(lastHour.answered) + sum(lastHour.refused) + sum(lastHour.failed)
  const waiting = sum(upstreams.map((row) => row.queue?.waiting ?? 0))
  const active = sum(upstreams.map((row) => row.queue?.active ?? 0))
  const oldest = Math.max(0, ...upstreams.map((row) => row.queue?.oldestMs ?? 0))
  const of = (kind) => alive.filter((process) => process.kind === kind)
  const busiest = (kind) =>
    of(kind).length === 0 ? 'none' : `busiest ${percent(Math.max(...of(kind).map((process) => process.busy)))}`
  return [
    tile('Calls, last 60 s', String(all), `${hour} in the last hour`),
    tile(
      'Failing (5xx), last 60 s',
      all === 0 ? '–' : percent(failed / all),
      all === 0 ? 'no calls' : `${percent(refused / all)} refused (4xx)`,
    ),
    tile('Waiting', String(waiting), waiting > 0 ? `oldest ${span(oldest)}` : 'nothing waits'),
    tile('Under way', String(active), 'at workers'),
    tile('Workers', String(of('worker').length), busiest('worker')),
    tile('API nodes', String(of('web').length), busiest('web')),
  ].join('')
}

/** If there are more lines than this, only the first are shown: the gravest, latest or busiest. */
const LINES_MAX = 8
const LINES_FIRST = 6

/**
 * Problems that need somebody. If the headline already has the text of a problem, its line has only
 * the name of the API.
 */
function attention({ problems, upstreams, headline: { text: said } }) {
  const present = problems.filter(({ endedAt }) => endedAt === null)
  const past = problems.filter(({ endedAt }) => endedAt !== null)
  const over = past.length === 0 ? '' : `<ul class="attention past">${past.map(problemLine).join('')}</ul>`
  if (present.length === 0) {
    const unchecked = upstreams.filter((row) => stateOf(row) === 'Unchecked').length
    return `${calm(
      unchecked > 0
        ? `Nothing needs attention so far; ${countOf(unchecked, 'API')} ${unchecked === 1 ? 'is' : 'are'} not checked yet.`
        : 'Nothing needs attention.',
    )}${over}`
  }
  const list = (some) => `<ul class="attention">${some.join('')}</ul>`
  const lines = present.map((problem) => problemLine({ ...problem, isInHeadline: `${problem.text}.` === said }))
  return firstLines(lines, { list, one: 'more problem' }) + over
}

/** A list. If it is long, its first lines, with the others behind a click. */
function firstLines(items, { list, one, many = `${one}s` }) {
  if (items.length <= LINES_MAX) return list(items)
  const rest = items.slice(LINES_FIRST)
  return `${list(items.slice(0, LINES_FIRST))}<details class="more"><summary>${countOf(rest.length, one, many)}</summary>${list(rest)}</details>`
}

function problemLine({ rank, label, slug, text, callers, todo, runbook, endedAt, isInHeadline = false }) {
  const isOver = endedAt !== null
  const state = isOver ? 'Over' : rank === 0 ? 'Down' : STATES_BY_LABEL.has(label) ? label : 'Degraded'
  const words = escapeHtml(isInHeadline ? (slug ?? '') : text)
  const linked = slug === null ? words : linkSlug(words, escapeHtml(slug))
  const action = isOver
    ? undefined
    : label === 'Paused'
      ? ['resume', 'Resume']
      : ['Down', 'Degraded', 'Failing', 'Limited'].includes(label)
        ? ['probe', 'Probe']
        : undefined
  const button = action
    ? `<button type="button" data-action="${action[0]}" data-slug="${escapeHtml(slug)}" aria-label="${action[1]} ${escapeHtml(slug)} now">${action[1]}</button>`
    : ''
  const book = `<a href="/runbooks#${escapeHtml(runbook)}">Runbook<span class="sr">: ${escapeHtml(label)}</span></a>`
  const details = isOver
    ? `<small>${escapeHtml(callers)} ${book}</small>`
    : `<small>${escapeHtml(callers)} <b>To do:</b> ${escapeHtml(todo)} ${book}</small>`
  return `<li class="${isOver ? 'over' : `rank-${rank}`}"><div>${pill(state, isOver ? `${label}, over` : label)} ${linked}${details}</div>${button}</li>`
}

/** Labels that have a colour of their own. */
const STATES_BY_LABEL = new Set(['Paused', 'Limited'])

function linkSlug(text, slug) {
  return text.startsWith(slug) ? `<a href="/queues/${slug}">${slug}</a>${text.slice(slug.length)}` : text
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
      // An account that was deleted has no page.
      email === null
        ? `<a href="/calls?account=${escapeHtml(id)}">${escapeHtml(id.slice(0, 8))}… (gone)</a>`
        : `<a href="/accounts/${escapeHtml(id)}">${escapeHtml(email)}</a>`,
      String(calls),
      String(limited),
      String(refused),
      failed > 0 ? `<b class="bad">${failed}</b>` : '0',
    ]),
  )
}

function processes({ processes: rows }) {
  if (rows === null) return UNKNOWN
  // If there is only one host, its name does not help to distinguish processes.
  const hasHosts = new Set(rows.map(({ host }) => host)).size > 1
  const lines = [...rows]
    .sort((a, b) => b.busy - a.busy)
    .map((row) => [
      `${escapeHtml(row.kind)} <small>${hasHosts ? `${escapeHtml(row.host)} · ` : ''}${row.pid}</small>`,
      briefSpan(row.upMs),
      percent(row.busy),
      `${row.lagMs.toFixed(0)} ms`,
      megabytes(row.memoryBytes),
      String(row.inFlight),
    ])
  const heads = ['Process', 'Up', 'Busy', 'Loop p99', 'Memory', 'In flight']
  const list = (some) => table('Processes', heads, some)
  return firstLines(lines, { list, one: 'more process', many: 'more processes' })
}

function stores({ stores: { redis, postgres } }) {
  const away = `<b class="bad">does not answer</b>`
  const of = (bytes) => (bytes > 0 ? ` of ${megabytes(bytes)}` : '')
  return table(
    'Stores',
    ['Store', 'Latency', 'Size', 'Load'],
    [
      redis
        ? [
            'Redis',
            `${redis.latencyMs.toFixed(1)} ms`,
            `${megabytes(redis.usedBytes)}${of(redis.maxBytes)}`,
            `${redis.opsPerSecond} ops/s, ${redis.clients} clients`,
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
      `<li>${pill(to)} <a href="/queues/${escapeHtml(slug)}">${escapeHtml(slug)}</a> ${escapeHtml(causeWords({ cause, from, to }))}${code && !isRecovery({ from, to }) ? `, ${escapeHtml(code)}` : ''}, score ${score}<small>${span(Math.max(0, at - when))} ago</small></li>`,
  )
  return firstLines(items, { list: changeList, one: 'earlier change' })
}

const changeList = (some) => `<ol class="changes">${some.join('')}</ol>`

function audit({ audit: rows, at }) {
  if (rows === null) return calm('Unknown: Postgres does not answer.')
  if (rows.length === 0) return calm('No operator has changed anything yet.')
  const items = rows.map(
    ({ action, subject, actor, at: when }) =>
      `<li><b>${escapeHtml(action)}</b> ${escapeHtml(subject)}<small>${escapeHtml(actor)}, ${span(Math.max(0, at - when))} ago</small></li>`,
  )
  return firstLines(items, { list: changeList, one: 'earlier change' })
}
