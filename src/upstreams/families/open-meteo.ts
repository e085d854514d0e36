import { members, text } from '../../catalog/json.ts'
import { overLimit, type ResponseClass } from '../../catalog/response-class.ts'
import type { UpstreamResponse } from '../../catalog/upstream-request.ts'

/**
 * Parameters by which Open-Meteo counts one request as several of its limits (more variables, more
 * days, more models) or answers in blocks that no mapping here reads. Without them every request
 * weighs 1, so that the caps are exact.
 */
export const WEIGHTED_PARAMETERS = [
  'current',
  'hourly',
  'daily',
  'minutely_15',
  'past_days',
  'past_hours',
  'past_minutely_15',
  'forecast_days',
  'forecast_hours',
  'forecast_minutely_15',
  'start_date',
  'end_date',
  'start_hour',
  'end_hour',
  'start_minutely_15',
  'end_minutely_15',
  'models',
  'domains',
]

/**
 * Whether the source states other units than the gateway expects. If the source states no unit of a
 * member, the member has the expected unit.
 */
export function hasOtherUnits(stated: unknown, expected: Record<string, string>): boolean {
  const units = members(stated)
  // Two characters look like the sign of micro.
  return Object.entries(expected).some(
    ([name, unit]) => (text(units[name]) ?? unit).normalize('NFKC') !== unit.normalize('NFKC'),
  )
}

/**
 * Reads from the reason how long a limit lasts: no header says it. Its windows follow the clock, so
 * these are the longest.
 */
export function waitFromReason({ status, body }: UpstreamResponse): ResponseClass | undefined {
  if (status !== 429) return undefined
  const reason = text(members(body).reason) ?? ''
  if (reason.startsWith('Minutely')) return overLimit(60_000)
  if (reason.startsWith('Hourly') || reason.startsWith('Daily')) return overLimit(3_600_000)
  return undefined
}
