import { drawCharts } from './charts.js'
import { morphInto } from './morph.js'
import { renderPlaces } from './render.js'
import { byTrouble, isIdle, rowTags } from './rows.js'
import { noteNews, reloadOnce, wantsLogin } from './session-end.js'

/**
 * Keeps the overview as it is on the server: a snapshot each second, put into the places that
 * differ.
 */
const shown = new Map()
const live = document.getElementById('live')
const notice = document.getElementById('notice')
const filter = /** @type {HTMLInputElement} */ (document.getElementById('filter'))
let latest

function show(snapshot) {
  // A later version has other APIs: this page has no rows for them.
  if (snapshot.upstreams.some(({ slug }) => !document.getElementById(slug))) return location.reload()
  latest = snapshot
  const places = renderPlaces(snapshot)
  /** @type {NodeListOf<HTMLElement>} */
  const elements = document.querySelectorAll('[data-place]')
  for (const element of elements) {
    const html = places[element.dataset.place]
    if (html === undefined || shown.get(element) === html) continue
    shown.set(element, html)
    morphInto(element, html)
  }
  drawRange()
  sortRows()
  applyFilter()
}

/** Tags of settings, which Postgres holds. */
const KNOWN_WITHOUT_REDIS = new Set(['paused', 'disabled'])

/** Tags that are switched on; none: every row is shown. */
const tags = new Set()

/** APIs that are idle and well are one line until somebody wants to see them. */
/** @type {HTMLTableElement} */
const table = document.querySelector('table.upstreams')
const folded = document.getElementById('folded')
const more = document.getElementById('more')
let isAll = false
more.addEventListener('click', () => {
  isAll = !isAll
  applyFilter()
})

/** A link to an API shows it. */
function showLinked() {
  if (document.getElementById(location.hash.slice(1))?.matches('tr.idle')) isAll = true
  applyFilter()
}
addEventListener('hashchange', () => {
  showLinked()
  document.getElementById(location.hash.slice(1))?.scrollIntoView()
})

/** @type {NodeListOf<HTMLInputElement>} */
const ranges = document.querySelectorAll('input[name="range"]')
const DAY_EVERY_MS = 60_000
let day
let dayAt = Number.NEGATIVE_INFINITY

/**
 * Draws the time that is chosen: the last hour or a part of it comes with each snapshot, the day is
 * asked for.
 */
function drawRange() {
  const { value } = [...ranges].find(({ checked }) => checked)
  const hour = latest?.lastHour ?? null
  if (value === 'day') {
    readDay()
    if (day !== undefined) drawCharts(day, value)
  } else drawCharts(value === 'hour' || hour === null ? hour : lastOf(hour, 15), value)
}
for (const range of ranges) range.addEventListener('change', drawRange)

const lastOf = (lines, count) =>
  Object.fromEntries(Object.entries(lines).map(([name, values]) => [name, values.slice(-count)]))

function readDay() {
  if (performance.now() - dayAt < DAY_EVERY_MS) return
  dayAt = performance.now()
  fetch('/overview/day', { redirect: 'manual' })
    .then((response) => response.json())
    .then((answer) => {
      day = answer.day
      drawRange()
    })
    // The next minute asks again. That the console is away is said elsewhere.
    .catch(() => undefined)
}

function applyFilter() {
  const wanted = filter.value.trim().toLowerCase()
  const counts = {}
  for (const row of latest?.upstreams ?? []) {
    const own = rowTags(row)
    for (const [tag, has] of Object.entries(own)) counts[tag] = (counts[tag] ?? 0) + (has ? 1 : 0)
    const isFound = `${row.slug} ${row.name}`.toLowerCase().includes(wanted)
    const isTagged = tags.size === 0 || [...tags].some((tag) => own[tag])
    const element = document.getElementById(row.slug)
    element.hidden = !(isFound && isTagged)
    element.classList.toggle('idle', isIdle(row))
  }
  // What somebody looks for is shown, idle or not.
  table.classList.toggle('all', isAll || wanted !== '' || tags.size > 0)
  const idle = [...table.querySelectorAll('tr.idle')].map(({ id }) => id).sort()
  folded.hidden = idle.length === 0 || wanted !== '' || tags.size > 0
  const words = `${idle.length} ${idle.length === 1 ? 'API is' : 'APIs are'} healthy and idle`
  const said = isAll ? `${words}.` : `${words}: ${idle.join(', ')}.`
  if (folded.firstElementChild.textContent !== said) folded.firstElementChild.textContent = said
  const verb = isAll ? 'Fold' : 'Show'
  if (more.textContent !== verb) more.textContent = verb
  more.setAttribute('aria-expanded', String(isAll))
  const isShown = (row) => !row.hidden && (table.classList.contains('all') || !row.classList.contains('idle'))
  document.getElementById('none').hidden = !folded.hidden || [...table.tBodies[0].rows].some(isShown)
  /** @type {NodeListOf<HTMLElement>} */
  const places = document.querySelectorAll('[data-count]')
  for (const place of places) {
    const isKnown =
      KNOWN_WITHOUT_REDIS.has(place.dataset.count) || !latest?.upstreams.some(({ health }) => health === null)
    place.textContent = isKnown ? String(counts[place.dataset.count] ?? 0) : '?'
  }
}

/** Rows move when their trouble changes, but never under somebody's pointer or keyboard. */
function sortRows() {
  const body = document.querySelector('table.upstreams tbody')
  if (!latest || body.matches(':hover') || body.contains(document.activeElement)) return
  const order = byTrouble(latest.upstreams).map(({ slug }) => slug)
  if (order.join() === [...body.children].map(({ id }) => id).join()) return
  body.append(...order.map((slug) => document.getElementById(slug)))
}

/** @type {NodeListOf<HTMLElement>} */
const chips = document.querySelectorAll('button.chip')
for (const chip of chips) {
  chip.addEventListener('click', () => {
    const { tag } = chip.dataset
    if (!tags.delete(tag)) tags.add(tag)
    chip.setAttribute('aria-pressed', String(tags.has(tag)))
    applyFilter()
  })
}

function setLive(text, isLive) {
  if (live.textContent !== text) live.textContent = text
  live.classList.toggle('on', isLive)
}

/**
 * A snapshot comes each second. After so long without one, what is shown may be untrue.
 * Milliseconds.
 */
const STALE_MS = 4_000

/**
 * After so long a connection over which nothing comes is given up: it may lead nowhere any more.
 * Milliseconds.
 */
const RECONNECT_MS = 15_000

/** How often a console without updates requests its page, milliseconds. */
const ASK_EVERY_MS = 1_000

let events
let heardAt
let connectedAt
let isAsking = false

function connect() {
  events?.close()
  connectedAt = performance.now()
  heardAt ??= connectedAt
  events = new EventSource('/overview/events')
  events.onmessage = ({ data }) => {
    heardAt = performance.now()
    noteNews()
    setLive('live', true)
    show(JSON.parse(data))
  }
  events.onerror = () => {
    setLive('reconnecting', false)
    if (isAsking) return
    isAsking = true
    setTimeout(askForPage, ASK_EVERY_MS, performance.now())
  }
}
connect()
showLinked()

/**
 * Finds out why there is no news since `brokenAt`. Other refusals than the refusals of a session
 * may come from a proxy while the console starts again: its page in the place of this page would
 * never become the console.
 */
async function askForPage(brokenAt) {
  const signal = AbortSignal.timeout(RECONNECT_MS)
  const answer = await fetch('/', { cache: 'no-store', redirect: 'manual', signal }).catch(() => undefined)
  isAsking = heardAt < brokenAt
  if (!isAsking) return
  // If the connection only broke, the browser connects again by itself.
  const isClosed = events.readyState === EventSource.CLOSED
  const wantsReload = answer !== undefined && (wantsLogin(answer) || (answer.ok && isClosed))
  if (wantsReload && !reloadOnce() && isClosed) connect()
  setTimeout(askForPage, ASK_EVERY_MS, brokenAt)
}

/**
 * A console that hangs, or a network that went away, closes no connection: what was well then would
 * be shown for ever.
 */
setInterval(() => {
  const now = performance.now()
  if (now - heardAt < STALE_MS) return
  const headline = document.querySelector('[data-place="headline"]')
  const since = latest ? ` since ${new Date(latest.at).toLocaleTimeString()}` : ''
  const text = `The console has sent nothing${since}: what is below may be untrue.`
  setLive('no news', false)
  if (headline.textContent !== text) headline.textContent = text
  shown.delete(headline)
  if (now - Math.max(heardAt, connectedAt) > RECONNECT_MS) connect()
}, 1_000)
filter.addEventListener('input', applyFilter)

const WORDS = {
  pause: ['Pause', 'Workers take no more calls of it, until somebody resumes it.'],
  resume: ['Resume', 'Workers take its waiting calls again.'],
  probe: ['Probe', 'One request is sent to it now, paid from its cap.'],
  disable: ['Disable', 'Calls to it are refused, and it leaves the catalog.'],
  enable: ['Enable', 'It is in the catalog and takes calls.'],
}

document.addEventListener('click', ({ target }) => {
  /** @type {HTMLElement | null} */
  const button = target instanceof Element ? target.closest('button[data-action]') : null
  if (button) confirmAction(button.dataset.action, button.dataset.slug)
})

function confirmAction(action, slug) {
  const [verb, text] = WORDS[action]
  const dialog = /** @type {HTMLDialogElement} */ (document.getElementById('confirm'))
  document.getElementById('confirm-title').textContent = `${verb} ${slug}?`
  const waiting = latest?.upstreams.find((row) => row.slug === slug)?.queue?.waiting ?? 0
  const now = action === 'pause' && waiting > 0 ? ` ${waiting} waiting now.` : ''
  document.getElementById('confirm-text').textContent = text + now
  document.getElementById('confirm-mode').hidden = action !== 'pause'
  document.getElementById('confirm-yes').textContent = verb
  dialog.returnValue = ''
  dialog.onclose = () => {
    if (dialog.returnValue !== 'yes') return
    /** @type {HTMLInputElement} */
    const chosen = document.querySelector('#confirm-mode input:checked')
    act({ action, slug, verb, body: action === 'pause' ? { mode: chosen.value } : undefined })
  }
  dialog.showModal()
}

function probeWords(outcome) {
  if (!outcome) return 'no result yet. Check that a worker is running and that the cap has room.'
  return outcome.code === null ? `${outcome.words}.` : `failed: ${outcome.words} (${outcome.code}).`
}

async function act({ action, slug, verb, body }) {
  notice.textContent = ''
  const path = `/v1/operator/upstreams/${encodeURIComponent(slug)}`
  try {
    const isSetting = action === 'enable' || action === 'disable'
    const sent = isSetting ? { enabled: action === 'enable' } : body
    const response = await fetch(isSetting ? path : `${path}/${action}`, {
      method: isSetting ? 'PATCH' : 'POST',
      ...(sent ? { headers: { 'content-type': 'application/json' }, body: JSON.stringify(sent) } : {}),
    })
    const answer = await response.json().catch(() => undefined)
    notice.textContent = response.ok
      ? `${verb} ${slug}: ${action === 'probe' ? probeWords(answer?.outcome) : 'done.'}`
      : `${verb} ${slug}: ${answer?.message ?? `refused (${response.status})`}`
  } catch {
    notice.textContent = `${verb} ${slug}: the console did not answer.`
  }
  notice.classList.add('shown')
  setTimeout(() => notice.classList.remove('shown'), 6000)
}
