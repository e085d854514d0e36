import { shareWords, sourceFailures, sumOf } from './failure-share.ts'
import type { Facts, Present, UpstreamRow } from './snapshot.ts'
import { countOf, span } from './words.js'

/**
 * Least number of upstreams that fail in the same way before the cause is probably on the gateway's
 * side.
 */
const COMMON_MIN = 3

/**
 * Groups of unreachable APIs that share a cause. If name look-ups, connections or handshakes fail
 * for most APIs at once, these APIs are one group, because the cause is the network of this
 * machine. Otherwise APIs that fail with the same words are a group. A group has at least three
 * APIs.
 */
export function unreachedGroups({ upstreams }: Pick<Facts, 'upstreams'>): UpstreamRow[][] {
  const unreached = upstreams.filter(isUnreached)
  const groups =
    unreached.length * 2 >= upstreams.filter(isChecked).length
      ? [unreached]
      : [...Map.groupBy(unreached, ({ health }) => health?.lastFailure?.words).values()]
  return groups.filter((rows) => rows.length >= COMMON_MIN)
}

/** A problem for each group: the cause, the number of APIs, and their names. */
export function networkProblems(groups: UpstreamRow[][], { at, upstreams }: Facts): Present[] {
  const enabled = upstreams.filter((row) => row.enabled).length
  const checked = upstreams.filter(isChecked).length
  return groups.map((rows): Present => {
    const causes = new Set(rows.map(({ health }) => health?.lastFailure?.words ?? ''))
    const began = Math.min(...rows.map(({ health }) => health?.since ?? at))
    const longest = began < at ? `, the first for ${span(at - began)}` : ''
    const failing = rows.flatMap((row) => sourceFailures(row, at) ?? [])
    const share = failing.length > 0 ? `; ${shareWords(sumOf(failing), 'failed')}` : ''
    const isMost = rows.length * 2 >= checked
    const isGrave = isMost || failing.length > 0 || rows.some(({ health }) => health?.status === 'Down')
    return {
      rank: isGrave ? 0 : 2,
      label: 'Network',
      slug: null,
      text: `${rows.length} of ${countOf(checked, checked < enabled ? 'checked API' : 'API')} cannot be reached (${[...causes].join('; ')})${longest}${share}`,
      callers: `Callers of these APIs get 502 or a stored answer, and test keys work: ${rows.map(({ slug }) => slug).join(', ')}.`,
      todo: "Check this machine's network, DNS and outgoing firewall before the APIs themselves.",
      runbook: 'network',
    }
  })
}

function isChecked({ enabled, health }: UpstreamRow): boolean {
  return enabled && health !== null && health.checkedAt !== null
}

/** Whether callers of an API cannot reach it. If a fallback source answers, they can. */
function isUnreached(row: UpstreamRow): boolean {
  const { health } = row
  if (!isChecked(row) || health === null || health.status === 'Healthy' || health.answeredBy !== null) return false
  return health.lastFailure?.isNetwork === true
}
