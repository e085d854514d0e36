import './actions.js'
import { drawCharts } from './charts.js'
import { morphInto } from './morph.js'
import { renderPlaces } from './render.js'
import { byTrouble, rowTags } from './rows.js'
import { noteNews, reloadOnce, wantsLogin } from './session-end.js'

/**
 * Keeps the overview as it is on the server: a snapshot each second, put into the places that
 * differ.
 */
const shown = new Map()
const live = document.getElementById('live')
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

/** A chip that fits no API is left out, unless it is on. */
function showChip(chip, counts) {
  const { tag } = chip.dataset
  const isKnown = KNOWN_WITHOUT_REDIS.has(tag) || !latest?.upstreams.some(({ health }) => health === null)
  const count = counts[tag] ?? 0
  chip.hidden = isKnown && count === 0 && !tags.has(tag)
  chip.querySelector('[data-count]').textContent = isKnown ? String(count) : '?'
}

/** Rows whose calls are alike change places no more often than this, milliseconds. */
const SORT_EVERY_MS = 5_000
let sortedAt = Number.NEGATIVE_INFINITY

/** Rows move when their trouble or calls change, but never under somebody's pointer or keyboard. */
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
