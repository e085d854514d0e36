/** The two flows of load: to an upstream with a wide cap, and to an upstream with a narrow cap. */
export type Flow = 'weather' | 'air-quality'

/** The narrow cap: requests in any window, and at once. */
export const NARROW = { max: 30, windowMs: 10_000, concurrency: 4 }

const COLUMNS = 30_000

/**
 * The path of a call. Its parameters encode its number as a grid cell, so that no two calls share a
 * stored answer. The upstream echoes the number in the data.
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

/**
 * The upstream's answer with the number in it. It has all members of a real answer, because the
 * gateway would probe the source if an answer lacked members.
 */
export function bodyWith(flow: Flow, nonce: number): unknown {
  const place = { latitude: 1, longitude: 1, elevation: 1, timezone: 'GMT', utc_offset_seconds: 0 }
  const step = { time: '2026-01-01T00:00', interval: 900 }
  if (flow === 'weather') {
    const sky = { windspeed: 1, winddirection: 1, is_day: 1, weathercode: 0 }
    return { ...place, current_weather: { ...step, temperature: nonce, ...sky } }
  }
  const gases = { ozone: 1, carbon_monoxide: 1, nitrogen_dioxide: 1, sulphur_dioxide: 1 }
  return { ...place, current: { ...step, pm10: nonce, pm2_5: 1, us_aqi: 1, european_aqi: 1, ...gases } }
}

/** The number in the data of an answer; undefined if there is none. */
export function echoOf(data: unknown): unknown {
  if (typeof data !== 'object' || data === null) return undefined
  return Reflect.get(data, 'temperature_c') ?? Reflect.get(data, 'pm10')
}
