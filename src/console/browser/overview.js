import './actions.js'
import { drawCharts } from './charts.js'
import { morphInto } from './morph.js'
import { renderPlaces } from './render.js'
import { byTrouble, rowTags } from './rows.js'
import { noteNews, reloadOnce, wantsLogin } from './session-end.js'

/**
 * Keeps the overview up to date: it receives a snapshot each second and replaces the parts that
 * differ.
 */
const shown = new Map()
const live = document.getElementById('live')
const filter = /** @type {HTMLInputElement} */ (document.getElementById('filter'))
let latest

function show(snapshot) {
  // A later version may have other APIs, for which this page has no rows.
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

/** Tags with settings that are stored in Postgres. */
const KNOWN_WITHOUT_REDIS = new Set(['paused', 'disabled'])

/** The tags that are switched on. If none is on, every row is shown. */
const tags = new Set()

/** @type {NodeListOf<HTMLInputElement>} */
const ranges = document.querySelectorAll('input[name="range"]')
const DAY_EVERY_MS = 60_000
let day
let dayAt = Number.NEGATIVE_INFINITY

/**
 * Draws the chosen period. The last hour, or a part of it, comes with each snapshot; the last day
 * is requested.
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
    // The next minute requests it again. Another part of the page shows that the console does not
    // answer.
    .catch(() => undefined)
}

function applyFilter() {
  const wanted = filter.value.trim().toLowerCase()
  const rows = latest?.upstreams ?? []
  const counts = {}
  let isAnyShown = rows.length === 0
  for (const row of rows) {
    const own = rowTags(row)
    for (const [tag, has] of Object.entries(own)) counts[tag] = (counts[tag] ?? 0) + (has ? 1 : 0)
    const isFound = `${row.slug} ${row.name}`.toLowerCase().includes(wanted)
    const isTagged = tags.size === 0 || [...tags].some((tag) => own[tag])
    document.getElementById(row.slug).hidden = !(isFound && isTagged)
    isAnyShown ||= isFound && isTagged
  }
  document.getElementById('none').hidden = isAnyShown
  for (const chip of chips) showChip(chip, counts)
}

/** A chip that matches no API is hidden, unless it is switched on. */
function showChip(chip, counts) {
  const { tag } = chip.dataset
  const isKnown = KNOWN_WITHOUT_REDIS.has(tag) || !latest?.upstreams.some(({ health }) => health === null)
  const count = counts[tag] ?? 0
  chip.hidden = isKnown && count === 0 && !tags.has(tag)
  chip.querySelector('[data-count]').textContent = isKnown ? String(count) : '?'
}

/** Least time between two reorderings of the rows, milliseconds. */
const SORT_EVERY_MS = 5_000
let sortedAt = Number.NEGATIVE_INFINITY

/**
 * Rows are reordered when their problems or calls change, but not while a pointer or the keyboard
 * is on them.
 */
function sortRows() {
  const body = document.querySelector('table.apis tbody')
  if (!latest || body.matches(':hover') || body.contains(document.activeElement)) return
  if (performance.now() - sortedAt < SORT_EVERY_MS) return
  sortedAt = performance.now()
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
 * A snapshot comes each second. After so long without a snapshot, the page may be outdated,
 * milliseconds.
 */
const STALE_MS = 4_000

/**
 * If a connection is silent for so long, it is closed, because it may lead nowhere. Milliseconds.
 */
const RECONNECT_MS = 15_000

/** How often a page without updates asks whether its console works, milliseconds. */
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

/**
 * Finds out why there have been no snapshots since `brokenAt`. The page reloads only if a session
 * was refused, or if the console answers but the browser has given the connection up. Any other
 * refusal may come from a proxy while the console restarts; its error page would replace this page
 * and never become the console again.
 */
async function askForPage(brokenAt) {
  const signal = AbortSignal.timeout(RECONNECT_MS)
  const answer = await fetch('/', { cache: 'no-store', redirect: 'manual', signal }).catch(() => undefined)
  isAsking = heardAt < brokenAt
  if (!isAsking) return
  // If only the connection broke, the browser reconnects by itself.
  const isClosed = events.readyState === EventSource.CLOSED
  const wantsReload = answer !== undefined && (wantsLogin(answer) || (answer.ok && isClosed))
  if (wantsReload && !reloadOnce() && isClosed) connect()
  setTimeout(askForPage, ASK_EVERY_MS, brokenAt)
}

/**
 * If the console hangs or the network is gone, no connection is closed. Without this check the page
 * would show the last state for ever.
 */
setInterval(() => {
  const now = performance.now()
  if (now - heardAt < STALE_MS) return
  const headline = document.querySelector('[data-place="headline"]')
  const since = latest ? ` since ${new Date(latest.at).toLocaleTimeString()}` : ''
  const text = `The console has sent no update${since}: the figures below may be out of date.`
  setLive('no news', false)
  if (headline.textContent !== text) headline.textContent = text
  shown.delete(headline)
  if (now - Math.max(heardAt, connectedAt) > RECONNECT_MS) connect()
}, 1_000)
filter.addEventListener('input', applyFilter)
