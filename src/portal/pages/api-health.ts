import { type Html, html } from '../../pages/html.ts'
import type { HealthChangeView, HealthPast } from '../catalog-view.ts'
import { type Condition, changeWords } from '../condition.ts'
import { moment } from './parts.ts'

const DAY_MS = 86_400_000
const WIDTH = 720
const HEIGHT = 28

/** Least width of a state in the strip, so that a change in the last minute is visible. */
const NARROWEST = 4

/** Most changes in the list. The strip shows all. */
const CHANGES_MAX = 8

/** The last 24 hours as a strip, and the changes in words with their causes. */
export function healthOfTheDay(condition: Condition, past: HealthPast | undefined, now: number = Date.now()): Html {
  const word = condition.healthWord ?? condition.word
  const isUnknown = word === 'Not checked'
  if (isUnknown && !past?.history.length) return html`<p>Nothing is known of its state at the moment.</p>`
  if (word === 'Not enabled') return html`<p>The gateway does not probe an API that is not enabled.</p>`
  if (!past) return html`<p>The changes of the last 24 hours are not available at the moment.</p>`
  const { history } = past
  const state = isUnknown ? 'Nothing is known of its state at the moment' : `Now: ${word}`
  const firstOkAt = firstOkOf(condition, past)
  const isNew = firstOkAt > now - DAY_MS
  const noChange = isNew ? 'No change since the first check that is known.' : 'No change in the last 24 hours.'
  const summary = history.length === 0 ? noChange : `${state}. The latest changes:`
  return html`${strip({ word, firstOkAt }, history, now)}
<p class="axis small" aria-hidden="true"><span>24 h ago</span><span>now</span></p>
<p>${summary}</p>
${
  history.length === 0
    ? ''
    : html`<ul class="changes">${history
        .slice(0, CHANGES_MAX)
        .map(
          (change) => html`<li>${moment(change.at)}: <strong>${change.to}</strong>. ${changeWords(change)}</li>`,
        )}</ul>`
}`
}

/**
 * Redis may have lost the time of the first check. A recorded change before shows that there was a
 * check, and that the API has been Healthy since.
 */
function firstOkOf({ firstOkAt }: Condition, { lastChange }: HealthPast): number {
  return lastChange?.to === 'Healthy' ? Math.min(firstOkAt, Date.parse(lastChange.at)) : firstOkAt
}

function strip(
  { word, firstOkAt }: Pick<Condition, 'word' | 'firstOkAt'>,
  history: HealthChangeView[],
  now: number,
): Html {
  const start = now - DAY_MS
  const x = (time: number) =>
    Math.min(WIDTH - NARROWEST, Math.round(((Math.max(start, time) - start) / DAY_MS) * WIDTH))
  const changes = history.toReversed()
  const firstChangeAt = changes[0] === undefined ? now : Date.parse(changes[0].at)
  const first = changes[0]?.from ?? word
  const seenAt = first === 'Healthy' ? Math.min(firstOkAt, firstChangeAt) : start
  const spans = [
    ...(seenAt > start ? [{ from: start, state: 'Not checked' }] : []),
    ...(seenAt < firstChangeAt ? [{ from: Math.max(start, seenAt), state: first }] : []),
    ...changes.map(({ at, to }) => ({ from: Date.parse(at), state: to })),
  ]
  const rects = spans.map(({ from, state }, index) => {
    const end = spans[index + 1]?.from ?? now
    return html`<rect class="${state.toLowerCase().replace(' ', '-')}" x="${x(from)}" y="0" width="${Math.max(NARROWEST, (spans[index + 1] ? x(end) : WIDTH) - x(from))}" height="${HEIGHT}"></rect>`
  })
  return html`<svg class="strip" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="Health of the last 24 hours: ${spans.map(({ state }) => state).join(', then ')}">${rects}</svg>`
}
