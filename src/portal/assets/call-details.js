import { timingBar } from '../../browser/timing-bar.js'
import { el } from './dom.js'

/** The parts of a call's time, and the headers with the ids that support questions need. */
export function showDetails(section, headers, totalMs) {
  const place = section.querySelector('[data-details]')
  const timing = Object.fromEntries(
    [...(headers.get('server-timing') ?? '').matchAll(/(\w+);dur=([\d.]+)/g)].map(([, name, ms]) => [name, Number(ms)]),
  )
  const { admission = null, queue = null, permit = null, upstream = null } = timing
  const times = {
    admissionMs: admission,
    queueMs: queue,
    permitMs: permit,
    upstreamMs: upstream,
    totalMs,
    quotedMs: null,
  }
  const ids = [
    ['Request id', headers.get('x-request-id')],
    ['Call id', headers.get('x-call-id')],
  ].filter(([, id]) => id)
  const bar = el('div', {})
  bar.innerHTML = admission === null ? '' : timingBar(times)
  place.replaceChildren(
    bar,
    el(
      'dl',
      { class: 'ids small' },
      ...ids.map(([name, id]) => el('div', {}, el('dt', {}, name), el('dd', {}, el('code', {}, id)))),
    ),
    el(
      'details',
      {},
      el('summary', {}, 'Response headers'),
      el(
        'pre',
        { tabindex: '0', 'aria-label': 'Response headers' },
        [...headers].map(([name, value]) => `${name}: ${value}`).join('\n'),
      ),
    ),
  )
}
