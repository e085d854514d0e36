/**
 * Parameters by which Open-Meteo counts one request as several of its limits (more variables, more days, more models)
 * or answers in blocks that no mapping here reads. Without them every request weighs 1, so that the caps are exact.
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
