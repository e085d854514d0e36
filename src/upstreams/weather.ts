import { field, record } from '../catalog/fields.ts'
import { isObject, members } from '../catalog/json.ts'
import { freshFor, lifetime } from '../catalog/lifetimes.ts'
import { latitude, longitude } from '../catalog/parameters.ts'
import { endpoint, upstream, words } from '../catalog/upstream-file.ts'
import { path } from '../catalog/upstream-request.ts'
import { hasOtherUnits, WEIGHTED_PARAMETERS, waitFromReason } from './families/open-meteo.ts'
import recordings from './recordings/weather.json' with { type: 'json' }

/** The units that the descriptions of the fields name. */
const UNITS = { interval: 'seconds', temperature: '°C', windspeed: 'km/h', winddirection: '°', weathercode: 'wmo code' }

const current = record({
  time: field.text('current_weather.time', 'Of the model step, in `timezone`, without offset or seconds'),
  temperature_c: field.number('current_weather.temperature', 'Degrees Celsius, 2 m above ground'),
  weathercode: field.wholeNumber(
    'current_weather.weathercode',
    'WMO 4677 code: 0 clear, 1-3 cloud, 45/48 fog, 51-67 rain',
  ),
  windspeed_kmh: field.number('current_weather.windspeed', 'km/h, 10 m above ground'),
  winddirection: field.number('current_weather.winddirection', 'Degrees'),
  is_day: field.wholeNumber('current_weather.is_day', '1 by day, 0 by night'),
  interval_seconds: field.number('current_weather.interval', 'Length of the model step'),
  latitude: field.number('latitude', 'Of the grid cell of the model'),
  longitude: field.number('longitude', 'Of the grid cell of the model'),
  elevation_m: field.number('elevation', 'Metres above sea level'),
  timezone: field.text('timezone', 'Zone of `time`: GMT, unless the call has the parameter `timezone`'),
  utc_offset_seconds: field.number('utc_offset_seconds', 'Offset of `timezone`, seconds'),
})

export default upstream({
  displayName: 'Weather',
  category: 'weather',
  description: 'Current temperature, wind and weather code for coordinates, from the Open-Meteo forecast models.',
  tags: ['weather', 'temperature', 'wind', 'coordinates'],
  keywords: words(
    'rain warm hot cold sunny snow umbrella forecast storm degrees celsius climate outside temperature wind wetter',
  ),
  terms: {
    nonCommercial: true,
    summary: 'Free for non-commercial use; commercial use needs an Open-Meteo subscription. Data under CC BY 4.0.',
    url: 'https://open-meteo.com/en/terms',
    licence: 'https://creativecommons.org/licenses/by/4.0/',
    attribution: 'Weather data by Open-Meteo.com',
  },
  baseUrl: 'https://api.open-meteo.com',
  credential: {
    accessMode: 'platform_managed',
    in: 'query',
    name: 'apikey',
    baseUrl: 'https://customer-api.open-meteo.com',
  },
  // The free host runs one request per address, queues a few and refuses more than 5 at once.
  caps: {
    concurrency: 4,
    rates: [
      { max: 600, seconds: 60 },
      { max: 5_000, seconds: 3_600 },
      { max: 10_000, seconds: 86_400 },
    ],
  },
  probe: {
    request: { path: path`/v1/forecast`, query: { latitude: 52.52, longitude: 13.41, current_weather: 'true' } },
    everySeconds: 60,
  },
  // Units would change the meaning of the mapped members.
  reservedParameters: [
    ...words('temperature_unit wind_speed_unit windspeed_unit timeformat format'),
    ...WEIGHTED_PARAMETERS,
  ],
  classify: waitFromReason,
  endpoints: {
    '/current': endpoint({
      description: 'Current temperature, wind and weather code for coordinates.',
      parameters: { latitude, longitude },
      data: current,
      cache: {
        ...freshFor(300),
        staleIfErrorSeconds: lifetime.hour,
        // The grid is 1 to 11 km: two decimals name a cell.
        key: ({ latitude, longitude }) => ({ latitude: latitude.toFixed(2), longitude: longitude.toFixed(2) }),
      },
      request: ({ latitude, longitude }) => ({
        path: path`/v1/forecast`,
        query: { latitude, longitude, current_weather: 'true' },
      }),
      readFrom: ({ body }) => {
        const { current_weather: block, current_weather_units: units } = members(body)
        return isObject(block) && !hasOtherUnits(units, UNITS) ? body : undefined
      },
      example: recordings['/current'],
    }),
  },
})
