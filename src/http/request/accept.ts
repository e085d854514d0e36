/** Ranges of a header that are read. A header has room for thousands, which would take 8 ms. */
const RANGES_MAX = 50

/**
 * The quality that `Accept` gives to a media range (RFC 9110, 12.5.1); undefined if it does not
 * name the range.
 */
function qualityOf(accept: string, range: string): number | undefined {
  for (const item of accept.split(',', RANGES_MAX)) {
    const [named = '', ...parameters] = item.split(';').map((part) => part.trim().toLowerCase())
    if (named !== range) continue
    const quality = parameters.find((parameter) => parameter.startsWith('q='))
    return quality === undefined ? 1 : Number(quality.slice(2)) || 0
  }
  return undefined
}

/**
 * Whether a request prefers a media type: its `Accept` names the type, and not with a lower quality
 * than `other`. Wildcards do not count.
 */
export function prefersType(accept: string | undefined, type: string, other = 'application/json'): boolean {
  const quality = accept === undefined ? 0 : (qualityOf(accept, type) ?? 0)
  return quality > 0 && quality >= (qualityOf(accept ?? '', other) ?? 0)
}

/** Whether `Accept` allows a media type. The most specific matching range decides. */
export function acceptsType(accept: string | undefined, type: string): boolean {
  if (accept === undefined) return true
  const ranges = [type, `${type.split('/', 1)[0]}/*`, '*/*']
  const quality = ranges.map((range) => qualityOf(accept, range)).find((given) => given !== undefined)
  return quality !== undefined && quality > 0
}
