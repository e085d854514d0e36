/** The two flows of load: a wide upstream, and one with a narrow cap. */
export type Flow = 'weather' | 'air-quality'

export const FLOWS: Flow[] = ['weather', 'air-quality']

/** The narrow cap: requests in any window, and at once. */
export const NARROW = { max: 30, windowMs: 10_000, concurrency: 4 }

const COLUMNS = 30_000

/**
 * The path of a call whose parameters are a number: a grid cell of its own, so that no call shares a stored answer with
 * another one. The upstream echoes the number in the data.
 */
export function pathOf(flow: Flow, nonce: number): string {
  const latitude = (-89 + Math.floor(nonce / COLUMNS) / 100).toFixed(2)
  const longitude = (-150 + (nonce % COLUMNS) / 100).toFixed(2)
  return `/v1/call/${flow}/current?latitude=${Number(latitude)}&longitude=${Number(longitude)}`
}

/** The number in a request as the upstream sees it; undefined for a health probe. */
export function nonceOf(query: URLSearchParams): number | undefined {
  const row = Math.round((Number(query.get('latitude')) + 89) * 100)
  const column = Math.round((Number(query.get('longitude')) + 150) * 100)
  // Probes use the coordinates of Berlin.
  const isProbe = query.get('latitude') === '52.52' && query.get('longitude') === '13.41'
  return isProbe ? undefined : row * COLUMNS + column
}

/** The upstream's answer with the number in it. */
export function bodyWith(flow: Flow, nonce: number): unknown {
  return flow === 'weather'
    ? { latitude: 1, longitude: 1, current_weather: { time: '2026-01-01T00:00', temperature: nonce } }
    : { latitude: 1, longitude: 1, current: { time: '2026-01-01T00:00', pm10: nonce } }
}

/** The number in the data of an answer; undefined when there is none. */
export function echoOf(data: unknown): unknown {
  if (typeof data !== 'object' || data === null) return undefined
  return Reflect.get(data, 'temperature_c') ?? Reflect.get(data, 'pm10')
}
