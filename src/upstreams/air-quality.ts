import { field, record } from '../catalog/fields.ts'
import { isObject, members } from '../catalog/json.ts'
import { freshFor, lifetime } from '../catalog/lifetimes.ts'
import { latitude, longitude } from '../catalog/parameters.ts'
import { endpoint, upstream, words } from '../catalog/upstream-file.ts'
import { path } from '../catalog/upstream-request.ts'
import { hasOtherUnits, WEIGHTED_PARAMETERS, waitFromReason } from './families/open-meteo.ts'
import recordings from './recordings/air-quality.json' with { type: 'json' }

const CONCENTRATIONS = words('pm10 pm2_5 ozone carbon_monoxide nitrogen_dioxide sulphur_dioxide')

/** The units that the descriptions of the fields name. */
const UNITS = Object.fromEntries(CONCENTRATIONS.map((name) => [name, 'μg/m³']))

const current = record({
  time: field.text('current.time', 'Of the model step, in `timezone`, without offset or seconds'),
  pm10: field.number('current.pm10', 'μg/m³, as all concentrations'),
  pm2_5: field.number('current.pm2_5', 'μg/m³: particles up to 2.5 μm'),
  ozone: field.number('current.ozone', 'μg/m³'),
  us_aqi: field.number('current.us_aqi', 'United States index, 0 to 500'),
  european_aqi: field.number('current.european_aqi', 'European index: 0-20 good, above 100 extremely poor'),
  carbon_monoxide: field.number('current.carbon_monoxide', 'μg/m³'),
  nitrogen_dioxide: field.number('current.nitrogen_dioxide', 'μg/m³'),
  sulphur_dioxide: field.number('current.sulphur_dioxide', 'μg/m³'),
  latitude: field.number('latitude', 'Of the grid cell of the model'),
  longitude: field.number('longitude', 'Of the grid cell of the model, degrees east'),
  timezone: field.text('timezone', 'IANA name of the zone of `time`'),
})

export default upstream({
  displayName: 'Air quality',
  category: 'weather',
  description: 'Current pollutant concentrations and air quality indices for coordinates, from the CAMS models.',
  tags: ['air quality', 'pollution', 'aqi', 'ozone', 'particulates', 'coordinates'],
  keywords: words('smog pollen dust clean breathe pm2.5 pm10 haze emissions'),
  terms: {
    nonCommercial: true,
    summary:
      'Free for non-commercial use; commercial use needs an Open-Meteo subscription. Data under CC BY 4.0, from the Copernicus Atmosphere Monitoring Service.',
    url: 'https://open-meteo.com/en/terms',
    licence: 'https://creativecommons.org/licenses/by/4.0/',
    attribution: 'Weather data by Open-Meteo.com',
  },
  baseUrl: 'https://air-quality-api.open-meteo.com',
  credential: {
    accessMode: 'platform_managed',
    in: 'query',
    name: 'apikey',
    baseUrl: 'https://customer-air-quality-api.open-meteo.com',
  },
  // The free host runs one request per address at a time and queues a few.
  caps: {
    concurrency: 2,
    rates: [
      { max: 600, seconds: 60 },
      { max: 5_000, seconds: 3_600 },
      { max: 10_000, seconds: 86_400 },
    ],
  },
  probe: {
    request: { path: path`/v1/air-quality`, query: { latitude: 52.52, longitude: 13.41, current: 'us_aqi' } },
    everySeconds: 300,
  },
  // The first two change the form of the answer.
  reservedParameters: ['timeformat', 'format', ...WEIGHTED_PARAMETERS],
  classify: waitFromReason,
  endpoints: {
    '/current': endpoint({
      description: 'Current air quality at a point.',
      parameters: { latitude, longitude },
      data: current,
      cache: {
        // Model steps are hourly.
        ...freshFor(900),
        staleIfErrorSeconds: 3 * lifetime.hour,
        // The grid is 0.1 to 0.4 degrees: two decimals are finer than a cell.
        key: ({ latitude, longitude }) => ({ latitude: latitude.toFixed(2), longitude: longitude.toFixed(2) }),
      },
      request: ({ latitude, longitude }) => ({
        path: path`/v1/air-quality`,
        query: {
          latitude,
          longitude,
          current: 'pm10,pm2_5,ozone,us_aqi,european_aqi,carbon_monoxide,nitrogen_dioxide,sulphur_dioxide',
        },
      }),
      readFrom: ({ body }) => {
        const { current: block, current_units: units } = members(body)
        return isObject(block) && !hasOtherUnits(units, UNITS) ? body : undefined
      },
      example: recordings['/current'],
    }),
  },
})
