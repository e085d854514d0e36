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
