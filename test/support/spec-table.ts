/**
 * The upstream APIs as the specification lists them (4.3). If a row lacks a member, the
 * specification says nothing about this member.
 */

export interface SpecParameter {
  type: 'string' | 'number'
  required: boolean
  default?: string | number
  minimum?: number
  maximum?: number
  enum?: string[]
}

export interface SpecEndpoint {
  parameters: Record<string, SpecParameter>
  data: string[]
}

type Stated = Omit<SpecParameter, 'type' | 'required'>

const string = (stated: Stated = {}): SpecParameter => ({ type: 'string', required: true, ...stated })
const number = (stated: Stated = {}): SpecParameter => ({ type: 'number', required: true, ...stated })
const optional = (parameter: SpecParameter): SpecParameter => ({ ...parameter, required: false })

const latitude = number({ minimum: -90, maximum: 90 })
const longitude = number({ minimum: -180, maximum: 180 })
const games: SpecEndpoint = {
  parameters: { dates: optional(string()), limit: optional(number({ default: 10 })) },
  data: ['games'],
}
const fact: SpecEndpoint = { parameters: {}, data: ['id', 'text', 'source', 'source_url'] }

export const specTable: Record<string, Record<string, SpecEndpoint>> = {
  'sports-scores': { '/nfl': games, '/nba': games, '/mlb': games },
  'mock-data': {
    '/posts': {
      parameters: { id: number({ minimum: 1, maximum: 100 }) },
      data: ['id', 'body', 'title', 'userId'],
    },
    '/users': {
      parameters: { id: number({ minimum: 1, maximum: 10 }) },
      data: ['id', 'city', 'name', 'email', 'phone'],
    },
    '/comments': { parameters: {}, data: ['comments'] },
  },
  countries: {
    '/name': { parameters: { name: string() }, data: ['results'] },
    '/info': { parameters: { name: string() }, data: ['name', 'region', 'capital', 'population'] },
    '/code': { parameters: { code: string() }, data: ['results'] },
  },
  news: {
    '/top': {
      parameters: {
        max: optional(number({ minimum: 1, maximum: 10, default: 5 })),
        lang: optional(string({ default: 'en' })),
        category: optional(
          string({
            enum: [
              'general',
              'world',
              'nation',
              'business',
              'technology',
              'entertainment',
              'sports',
              'science',
              'health',
            ],
          }),
        ),
      },
      data: ['total', 'articles'],
    },
    '/search': {
      parameters: { q: string(), max: optional(number({ default: 5 })) },
      data: ['total', 'articles'],
    },
  },
  'creature-game': {
    '/creature': { parameters: { name: string() }, data: ['id', 'name', 'types', 'height', 'weight'] },
    '/ability': { parameters: { name: string() }, data: ['id', 'name', 'effect', 'generation'] },
  },
  'development-indicators': {
    '/gdp': { parameters: { country: string() }, data: ['year', 'country', 'gdp_usd', 'indicator'] },
    '/population': { parameters: { country: string() }, data: ['year', 'country', 'indicator', 'population'] },
  },
  'random-facts': { '/random': fact, '/today': fact },
  currency: {
    '/latest': { parameters: {}, data: ['base', 'date', 'rates'] },
    '/pair': { parameters: { to: string(), from: string() }, data: ['to', 'date', 'from', 'rate'] },
  },
  'crypto-prices': {
    '/price': { parameters: { ids: string() }, data: ['prices'] },
    '/coin': { parameters: { id: string() }, data: ['id', 'name', 'symbol', 'ath_usd', 'market_cap_usd'] },
  },
  geocoding: {
    '/search': {
      parameters: { q: string(), limit: optional(number({ minimum: 1, maximum: 10, default: 5 })) },
      data: ['results'],
    },
    '/reverse': {
      parameters: { lat: number(), lon: number() },
      data: ['city', 'country', 'postcode', 'country_code', 'display_name'],
    },
  },
  'tech-forum': {
    '/topstories': { parameters: {}, data: ['story_ids'] },
    '/story': { parameters: { id: string() }, data: ['by', 'id', 'url', 'time', 'type'] },
  },
  'meal-recipes': {
    '/search': { parameters: { s: string() }, data: ['meals'] },
    '/by-ingredient': { parameters: { i: string() }, data: ['meals'] },
    '/categories': { parameters: {}, data: ['categories'] },
  },
  'public-holidays': {
    '/holidays': { parameters: { year: number(), countryCode: string() }, data: ['holidays'] },
    '/next': { parameters: { countryCode: string() }, data: ['upcoming'] },
  },
  'prediction-markets': {
    '/markets': {
      parameters: { limit: optional(number({ minimum: 1, maximum: 100, default: 20 })) },
      data: ['markets'],
    },
    '/events': {
      parameters: { limit: optional(number({ minimum: 1, maximum: 100, default: 20 })) },
      data: ['events'],
    },
  },
  'market-quotes': {
    '/quote': {
      parameters: {
        symbol: string(),
        range: optional(string({ enum: ['1d', '5d', '1mo', '3mo', '6mo', '1y', '2y', '5y'], default: '1d' })),
        interval: optional(string({ enum: ['1m', '5m', '15m', '1h', '1d', '1wk', '1mo'], default: '1d' })),
      },
      data: ['name', 'price', 'symbol', 'volume', 'day_low'],
    },
  },
  trivia: {
    '/questions': {
      parameters: {
        type: optional(string({ enum: ['multiple', 'boolean'] })),
        amount: optional(number({ default: 10, maximum: 50 })),
        category: optional(number()),
        difficulty: optional(string({ enum: ['easy', 'medium', 'hard'] })),
      },
      data: ['results', 'response_code'],
    },
  },
  'air-quality': {
    '/current': { parameters: { latitude, longitude }, data: ['pm10', 'time', 'ozone', 'pm2_5', 'us_aqi'] },
  },
  'instant-answers': {
    '/search': { parameters: { q: string() }, data: ['type', 'image', 'heading', 'abstract', 'abstract_url'] },
  },
  timezone: {
    '/current': {
      parameters: { timezone: string() },
      data: ['date', 'time', 'datetime', 'timezone', 'dst_active'],
    },
  },
  'space-picture': {
    '/today': {
      parameters: { date: optional(string()) },
      data: ['url', 'date', 'title', 'copyright', 'media_type'],
    },
  },
  encyclopedia: {
    '/summary': {
      parameters: { title: string() },
      data: ['title', 'extract', 'page_url', 'description', 'thumbnail_url'],
    },
  },
  'code-host-user': {
    '/profile': { parameters: { username: string() }, data: ['bio', 'name', 'login', 'followers', 'following'] },
  },
  weather: {
    '/current': {
      parameters: { latitude, longitude },
      data: ['time', 'is_day', 'weathercode', 'temperature_c', 'winddirection'],
    },
  },
  'dog-images': {
    '/random': { parameters: {}, data: ['status', 'image_url'] },
    '/breed': { parameters: { breed: string() }, data: ['status', 'image_url'] },
  },
  dictionary: {
    '/define': { parameters: { word: string() }, data: ['word', 'meanings', 'phonetic'] },
  },
  'ip-lookup': {
    '/lookup': { parameters: { ip: optional(string()) }, data: ['ip', 'isp', 'lat', 'lon', 'city'] },
  },
  'code-host-search': {
    '/repos': {
      parameters: { q: string(), per_page: optional(number({ minimum: 1, maximum: 30, default: 10 })) },
      data: ['total_count', 'repositories'],
    },
  },
  'sunrise-sunset': {
    '/times': {
      parameters: {
        lat: latitude,
        lng: longitude,
        date: optional(string()),
        tzid: optional(string()),
      },
      data: ['status', 'sunset', 'sunrise', 'day_length', 'solar_noon'],
    },
  },
}
