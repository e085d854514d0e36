/** Ranges of a header that are read: a header has room for thousands, which would take 8 ms. */
const RANGES_MAX = 50

/**
 * The quality that `Accept` gives a media range by name (RFC 9110, 12.5.1); undefined without the
 * name.
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
 * Whether a request asks for a media type: its `Accept` names the type and does not rank it below
 * `other`. A wildcard asks for nothing.
 */
export function asksFor(accept: string | undefined, type: string, other = 'application/json'): boolean {
  const quality = accept === undefined ? 0 : (qualityOf(accept, type) ?? 0)
  return quality > 0 && quality >= (qualityOf(accept ?? '', other) ?? 0)
}

/**
 * Whether `Accept` allows a media type; of the ranges that fit it, the most specific range decides.
 */
export function allows(accept: string | undefined, type: string): boolean {
  if (accept === undefined) return true
  const ranges = [type, `${type.split('/', 1)[0]}/*`, '*/*']
  const quality = ranges.map((range) => qualityOf(accept, range)).find((given) => given !== undefined)
  return quality !== undefined && quality > 0
}
