/** What the overview page shows of a snapshot, as HTML by place. The server fills the page with it, the browser renews it. */
export function renderPlaces(snapshot) {
  const places = {
    headline: headline(snapshot),
    tiles: tiles(snapshot),
    attention: attention(snapshot),
    errors: errors(snapshot),
    processes: processes(snapshot),
    stores: stores(snapshot),
    changes: changes(snapshot),
    audit: audit(snapshot),
  }
  for (const row of snapshot.upstreams) {
    places[`${row.slug} health`] = health(row, snapshot.at)
    places[`${row.slug} queue`] = queue(row)
    places[`${row.slug} cap`] = cap(row)
    places[`${row.slug} traffic`] = traffic(row)
    places[`${row.slug} actions`] = actions(row)
  }
  return places
}

/** Text as HTML shows it: whatever it holds, it stays text. */
export function escapeHtml(text) {
  return String(text).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

/** A time span in words: the two largest units. */
export function span(ms) {
  const seconds = Math.round(ms / 1_000)
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (seconds < 60) return `${seconds} s`
  const [[large, name], [small, lesser]] =
    seconds < 3_600
      ? [
          [60, 'min'],
          [1, 's'],
        ]
      : seconds < 86_400
        ? [
            [3_600, 'h'],
            [60, 'min'],
          ]
        : [
            [86_400, 'd'],
            [3_600, 'h'],
          ]
  const rest = Math.floor((seconds % large) / small)
  return `${Math.floor(seconds / large)} ${name}${rest > 0 ? ` ${rest} ${lesser}` : ''}`
}

const STATUS_MARKS = { Healthy: '●', Degraded: '▲', Down: '✕', Disabled: '○' }

function pill(status) {
  return `<span class="pill ${escapeHtml(status.toLowerCase())}"><span aria-hidden="true">${STATUS_MARKS[status] ?? ''}</span> ${escapeHtml(status)}</span>`
}

const CAUSES = {
  score: 'score',
  'failures-in-a-row': 'five failures in a row',
  'trials-passed': 'three good trials',
}

function headline({ upstreams, processes, stores: { redis, postgres } }) {
  if (!redis) return `${pill('Down')} Redis does not answer: calls are refused.`
  if (!postgres) return `${pill('Degraded')} Postgres does not answer: only keys in use work.`
  const down = upstreams.filter(({ enabled, status }) => enabled && status === 'Down').length
  const degraded = upstreams.filter(({ enabled, status }) => enabled && status === 'Degraded').length
  const enabled = upstreams.filter((row) => row.enabled).length
  if (!processes.some(({ kind }) => kind === 'worker')) return `${pill('Down')} No worker is alive: calls wait.`
  if (down > 0) return `${pill('Down')} ${down} of ${enabled} APIs down${degraded > 0 ? `, ${degraded} degraded` : ''}.`
  if (degraded > 0) return `${pill('Degraded')} ${degraded} of ${enabled} APIs degraded.`
  return `${pill('Healthy')} All ${enabled} enabled APIs are healthy.`
}

function tiles({ upstreams, lastHour, processes }) {
  const waiting = upstreams.reduce((sum, row) => sum + row.waiting, 0)
  const active = upstreams.reduce((sum, row) => sum + row.active, 0)
  const oldest = Math.max(0, ...upstreams.map((row) => row.oldestMs))
  const ok = lastHour.ok.at(-2) ?? 0
  const failed = lastHour.failed.at(-2) ?? 0
  const hourTotal = [...lastHour.ok, ...lastHour.failed].reduce((sum, count) => sum + count, 0)
  const hourFailed = lastHour.failed.reduce((sum, count) => sum + count, 0)
  const latest = (values) => values.findLast((value) => value !== null) ?? undefined
  const time = (ms) => (ms === undefined ? '–' : span(ms))
  const tile = (label, value, note) =>
    `<div class="tile"><dt>${label}</dt><dd>${value}<small>${note}</small></dd></div>`
  return [
    tile('Calls a minute', String(ok + failed), `${hourTotal} in the last hour`),
    tile('Errors', hourTotal === 0 ? '–' : percent(hourFailed / hourTotal), `${hourFailed} in the last hour`),
    tile('Waiting', String(waiting), waiting === 0 ? 'nothing waits' : `oldest ${span(oldest)}`),
    tile('Under way', String(active), plural(processes.filter(({ kind }) => kind === 'worker').length, 'worker')),
    tile('Queue p95', time(latest(lastHour.queueP95)), 'latest minute'),
    tile('Upstream p95', time(latest(lastHour.upstreamP95)), 'latest minute'),
  ].join('')
}

function plural(count, word) {
  return `${count} ${word}${count === 1 ? '' : 's'}`
}

function percent(share) {
  return `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`
}

function attention(snapshot) {
  const lines = snapshot.upstreams.flatMap((row) => troubles(row, snapshot)).sort((a, b) => a.rank - b.rank)
  if (lines.length === 0) return '<p class="calm">Nothing needs you.</p>'
  return `<ul class="attention">${lines.map(({ rank, html }) => `<li class="rank-${rank}">${html}</li>`).join('')}</ul>`
}

/** What is wrong with one API; the gravest has rank 0. */
function troubles(row, { at, processes }) {
  const name = `<a href="#${escapeHtml(row.slug)}">${escapeHtml(row.slug)}</a>`
  const lines = []
  if (row.enabled && row.status !== 'Healthy') {
    const since = row.since === null ? '' : ` for ${span(at - row.since)}`
    const due = row.trialInMs > 0 ? `next trial in ${span(row.trialInMs)}` : 'trial due'
    const trial = row.trialInMs === null ? '' : `; ${due}`
    const last = row.lastCode ? `, last ${escapeHtml(row.lastCode)}` : ''
    lines.push({ rank: row.status === 'Down' ? 0 : 2, html: `${pill(row.status)} ${name}${since}${last}${trial}` })
  }
  const isServed = processes.some(({ kind }) => kind === 'worker')
  const waits = `${name}: ${row.waiting} waiting${row.waiting > 0 ? `, oldest ${span(row.oldestMs)}` : ''}`
  if (row.waiting > 0 && !isServed) lines.push({ rank: 0, html: `<span class="pill down">✕ No worker</span> ${waits}` })
  if (row.paused) lines.push({ rank: 1, html: `<span class="pill paused">⏸ Paused</span> ${waits}` })
  if (row.cap?.nextSlotMs > 1_000 && row.waiting + row.active > 0) {
    const next = `next slot in ${span(row.cap.nextSlotMs)}`
    lines.push({ rank: 3, html: `<span class="pill degraded">▲ Cap used up</span> ${waits}; ${next}` })
  }
  return lines
}

function health(row, at) {
  if (!row.enabled) return `${pill('Disabled')}<small>not enabled</small>`
  const since =
    row.since === null ? 'no change yet' : `${span(at - row.since)} · ${escapeHtml(CAUSES[row.cause ?? ''] ?? '')}`
  return `${pill(row.status)} <b class="score">${row.score}</b><small>${since}</small>`
}

function queue(row) {
  const paused = row.paused ? '<span class="pill paused">⏸ Paused</span> ' : ''
  const oldest = row.waiting > 0 ? `oldest ${span(row.oldestMs)}` : 'nothing waits'
  return `${paused}<b>${row.waiting}</b> waiting, <b>${row.active}</b> under way<small>${oldest}</small>`
}

function cap({ cap: state, slug }) {
  if (!state) return '<small>not known</small>'
  const rates = state.rates.map(({ max, seconds, left }) => {
    const label = `${left} of ${max} left in ${span(seconds * 1_000)}`
    return `<span class="rate"><progress max="${max}" value="${left}" aria-label="${escapeHtml(slug)}: ${label}"></progress>${label}</span>`
  })
  const next = state.nextSlotMs > 0 ? `next slot in ${span(state.nextSlotMs)}` : 'free now'
  return `${rates.join('')}<small>${state.underWay} of ${state.concurrency} connections · ${next}</small>`
}

function traffic(row) {
  const share = row.errorShare > 0 ? `<b class="bad">${percent(row.errorShare)} failing</b>` : 'none failing'
  const p95 = row.upstreamP95 === null ? 'no calls lately' : `p95 ${span(row.upstreamP95)}`
  return `<b>${row.perMinute}</b>/min, ${share}<small>${p95}</small>`
}

function actions({ slug, paused, enabled }) {
  const button = (action, text) =>
    `<button type="button" data-action="${action}" data-slug="${escapeHtml(slug)}" aria-label="${text} ${escapeHtml(slug)}">${text}</button>`
  return [
    paused ? button('resume', 'Resume') : button('pause', 'Pause'),
    button('probe', 'Probe'),
    enabled ? button('disable', 'Disable') : button('enable', 'Enable'),
  ].join('')
}

function table(label, heads, rows) {
  const head = heads.map((text) => `<th scope="col">${text}</th>`).join('')
  const body = rows.map(([first = '', ...cells]) => {
    const rest = cells.map((cell, index) => `<td data-label="${heads[index + 1] ?? ''}">${cell}</td>`).join('')
    return `<tr><th scope="row">${first}</th>${rest}</tr>`
  })
  return `<table aria-label="${label}"><thead><tr>${head}</tr></thead><tbody>${body.join('')}</tbody></table>`
}

function errors({ errors: rows }) {
  if (rows.length === 0) return '<p class="calm">No error in the last hour.</p>'
  const shown = rows.slice(0, 20)
  return table(
    'Errors by API',
    ['API', 'Code', 'Calls'],
    shown.map(({ slug, code, count }) => [escapeHtml(slug), `<code>${escapeHtml(code)}</code>`, String(count)]),
  )
}

function processes({ processes: rows }) {
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

function megabytes(bytes) {
  return `${(bytes / 1_048_576).toFixed(bytes < 10_485_760 ? 1 : 0)} MB`
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
  if (rows.length === 0) return '<p class="calm">No change of health yet.</p>'
  const items = rows.map(
    ({ slug, to, cause, code, score, at: when }) =>
      `<li>${pill(to)} <a href="#${escapeHtml(slug)}">${escapeHtml(slug)}</a> ${escapeHtml(CAUSES[cause] ?? cause)}${code ? `, ${escapeHtml(code)}` : ''}, score ${score}<small>${span(at - when)} ago</small></li>`,
  )
  return `<ol class="changes">${items.join('')}</ol>`
}

function audit({ audit: rows, at }) {
  if (rows.length === 0) return '<p class="calm">No operator has changed anything yet.</p>'
  const items = rows.map(
    ({ action, subject, actor, at: when }) =>
      `<li><b>${escapeHtml(action)}</b> ${escapeHtml(subject)}<small>${escapeHtml(actor)}, ${span(Math.max(0, at - when))} ago</small></li>`,
  )
  return `<ol class="changes">${items.join('')}</ol>`
}
