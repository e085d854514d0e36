import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import fc from 'fast-check'
import { bodyParameters, queryParameters } from '../../src/admission/call-request.ts'
import {
  type CallTarget,
  type CheckedParameters,
  checkParameters,
  type GivenParameter,
} from '../../src/admission/parameters.ts'
import { type Catalog, createApi, loadCatalog } from '../../src/catalog/catalog.ts'
import { requestTarget } from '../../src/catalog/request-target.ts'
import { GatewayError } from '../../src/errors.ts'
import { parseJsonBody } from '../../src/http/request/json-body.ts'
import { document, readWritten } from '../support/own-document.ts'

const CONTEXT = { now: Date.UTC(2026, 0, 2), callerAddress: () => '203.0.113.9' }
let catalog: Catalog
before(async () => {
  catalog = await loadCatalog(new Map())
})

function findTarget(address: string): CallTarget {
  const [, slug = '', path = ''] = /^([^/]+)(\/.*)$/.exec(address) ?? []
  const api = catalog.get(slug)
  const endpoint = api?.endpoints.get(path)
  if (!api || !endpoint) throw new Error(`no endpoint ${address}`)
  return { api, endpoint }
}

function check(address: string, given: GivenParameter[]): CheckedParameters {
  return checkParameters(findTarget(address), given, CONTEXT)
}

const checkQuery = (address: string, query: string): CheckedParameters => check(address, queryParameters(query))

function refusal(run: () => unknown): GatewayError {
  try {
    run()
  } catch (error) {
    assert.ok(error instanceof GatewayError, `threw ${error}`)
    return error
  }
  assert.fail('it was accepted')
}

/** The parameter that a refusal names. */
function refusedParameter(run: () => unknown): unknown {
  const error = refusal(run)
  assert.equal(error.code, 'INVALID_PARAMETER', error.message)
  return error.details.tokens?.param
}

describe('a number in a query', () => {
  it('a number in a query is a number as programs print it, within its bounds', () => {
    for (const [text, value] of [
      ['1', 1],
      ['100', 100],
      ['42', 42],
    ] as const) {
      assert.equal(checkQuery('mock-data/posts', `id=${text}`).parameters.id, value)
    }
    for (const [text, value] of [
      ['-90', -90],
      ['52.5200', 52.52],
      ['0', 0],
      ['-0.5', -0.5],
      ['89.99999999999999', 89.99999999999999],
      ['5e-7', 0.0000005],
      ['1E1', 10],
      ['.5', 0.5],
      ['52.', 52],
      ['-0', 0],
    ] as const) {
      assert.ok(
        Object.is(checkQuery('weather/current', `latitude=${text}&longitude=0`).parameters.latitude, value),
        text,
      )
    }
  })

  const bad = [
    '',
    '0',
    '101',
    '-1',
    '1.5',
    '1e-1',
    '1e9',
    '0x1',
    '+1',
    '%201',
    '1%20',
    '01',
    '-0',
    '1_0',
    '1,5',
    'NaN',
    'Infinity',
  ]
  const worse = [
    '1'.repeat(400),
    '%D9%A1',
    '\u0661',
    'true',
    'null',
    '[1]',
    '1;2',
    '1%0A',
    '--1',
    '.5',
    '.',
    'e1',
    '1e',
    '1e400',
  ]
  for (const text of [...bad, ...worse]) {
    it(`a number in a query is refused as id=${text.slice(0, 20)}, with the parameter's name`, () => {
      assert.equal(
        refusedParameter(() => checkQuery('mock-data/posts', `id=${text}`)),
        'id',
      )
    })
  }

  it('a number in a query is never anything else than the number that was written', () => {
    fc.assert(
      fc.property(fc.double({ min: -90, max: 90, noNaN: true }), (value) => {
        const text = String(value)
        let latitude: unknown
        try {
          latitude = checkQuery('weather/current', `latitude=${text}&longitude=0`).parameters.latitude
        } catch (error) {
          assert.ok(error instanceof GatewayError && /e-\d{3}/.test(text), text)
          return
        }
        assert.equal(latitude, Number(text) + 0)
      }),
      { numRuns: 2_000 },
    )
  })

  it('a number in a query outside its bounds is refused', () => {
    fc.assert(
      fc.property(fc.oneof(fc.integer({ max: 0 }), fc.integer({ min: 101 })), (value) => {
        assert.equal(
          refusedParameter(() => checkQuery('mock-data/posts', `id=${value}`)),
          'id',
        )
      }),
    )
  })
})

describe('a number of 64 bits', () => {
  it('a number of 64 bits reaches an own API with all its digits, unless the document bounds the number', async () => {
    const integer = (name: string, schema: object = {}) => ({
      ...{ name, in: name === 'id' ? 'path' : 'query', required: name === 'id' },
      schema: { type: 'integer', format: 'int64', ...schema },
    })
    const parameters = [
      integer('id', { minimum: 1 }),
      integer('most', { maximum: 2 ** 52 }),
      integer('n', { format: 'int32' }),
    ]
    const responses = { 200: { description: 'ok' } }
    const paths = {
      '/ok': { get: { responses } },
      '/things/{id}': { get: { operationId: 'one', parameters, responses } },
    }
    const { upstream = assert.fail() } = await readWritten(document({ root: { paths } }))
    const api = createApi('things', upstream, { settings: new Map(), isOperatorNamed: true })
    const endpoint = api.endpoints.get('/one') ?? assert.fail()
    const send = (query: string) => checkParameters({ api, endpoint }, queryParameters(query), CONTEXT).parameters
    const long = '9223372036854775807'
    const [request] = [endpoint.declaration.request(send(`id=${long}`), CONTEXT)].flat()
    assert.equal(request?.path, `/things/${long}`)
    assert.deepEqual(send('id=7'), { id: 7 })
    for (const query of [`id=1&most=${long}`, `id=1&n=${long}`, `id=-${long}`, `id=${long}00`, 'id=1.5'])
      assert.equal(refusal(() => send(query)).code, 'INVALID_PARAMETER', query)
  })
})

describe('a number in a body', () => {
  it('a number in a body may be a JSON number or the same text, and nothing else', () => {
    assert.equal(check('mock-data/posts', bodyParameters({ id: 7 })).parameters.id, 7)
    assert.equal(check('mock-data/posts', bodyParameters({ id: '7' })).parameters.id, 7)
    assert.equal(check('mock-data/posts', bodyParameters({ id: [7] })).parameters.id, 7)
    for (const id of [true, null, [], [7, 8], [null], { n: 7 }, 7.5, Number.POSITIVE_INFINITY, '7 ', '']) {
      assert.equal(
        refusedParameter(() => check('mock-data/posts', bodyParameters({ id }))),
        'id',
      )
    }
  })
})

describe('a declared parameter', () => {
  it('a declared parameter that is required and missing is refused by name', () => {
    assert.equal(
      refusedParameter(() => checkQuery('weather/current', 'latitude=1')),
      'longitude',
    )
  })

  it('a declared parameter that is a text is refused with an example of it, a number or a choice with its bounds', () => {
    const refusalOf = (address: string, query: string) => refusal(() => checkQuery(address, query)).message
    assert.match(
      refusalOf('currency/pair', 'from=US+Dollar&to=EUR'),
      /from is invalid: .*\(3 letters\), such as [A-Z]{3}\.$/,
    )
    assert.match(refusalOf('crypto-prices/price', 'coin=btc'), /ids is invalid: it is required .*, such as [a-z,]+\b/)
    assert.match(refusalOf('timezone/current', 'timezone=Berlin'), /not an IANA time zone, such as Europe\/Berlin\.$/)
    assert.match(refusalOf('weather/current', 'latitude=91&longitude=1'), /a number from -90 to 90\.$/)
    assert.match(refusalOf('trivia/questions', 'difficulty=extreme'), /one of easy, medium, hard\.$/)
  })

  it('a declared parameter given twice is refused, in a query and in query and body together', () => {
    assert.equal(
      refusedParameter(() => checkQuery('mock-data/posts', 'id=1&id=1')),
      'id',
    )
    const given = [...queryParameters('id=1'), ...bodyParameters({ id: 2 })]
    assert.equal(
      refusedParameter(() => check('mock-data/posts', given)),
      'id',
    )
  })

  it('a declared parameter matches only its exact name: brackets or another letter case make another name', () => {
    for (const query of ['id[]=1', 'id[a]=1', 'ID=1']) {
      assert.equal(
        refusedParameter(() => checkQuery('mock-data/posts', query)),
        'id',
        query,
      )
    }
  })

  it('a declared parameter cannot be reached by a name with blanks around it, which some upstreams drop, nor can a reserved one', () => {
    for (const query of ['amount=1&+encode=base64', 'amount=1&+category=32', 'amount=1&token%09=a', 'amount=1&%20=a']) {
      assert.throws(() => checkQuery('trivia/questions', query), /begins or ends with a space/, query)
    }
  })

  it('a declared parameter that goes into a path is one segment; dots alone are refused', () => {
    for (const text of ['.', '..', '%2e%2e', '%2E', '']) {
      assert.equal(
        refusedParameter(() => checkQuery('code-host-user/profile', `username=${text}`)),
        'username',
        text,
      )
    }
    for (const [address, name] of [
      ['dictionary/define', 'word'],
      ['countries/name', 'name'],
      ['encyclopedia/summary', 'title'],
      ['market-quotes/quote', 'symbol'],
    ] as const) {
      for (const text of ['.', '..', '+..+']) {
        assert.equal(
          refusedParameter(() => checkQuery(address, `${name}=${text}`)),
          name,
          `${address} ${text}`,
        )
      }
    }
  })

  it('a declared parameter has its default when it is not given', () => {
    assert.equal(checkQuery('geocoding/search', 'q=Berlin').parameters.limit, 5)
  })
})

/** Each declared parameter that has aliases, with a call of its endpoint that gives it. */
function aliased(): { address: string; name: string; alias: string; values: Record<string, unknown> }[] {
  return [...catalog].flatMap(([slug, { endpoints }]) =>
    [...endpoints.values()].flatMap(({ path, declaration: endpoint, parameters }) =>
      parameters.flatMap(({ name, aliases, schema }) => {
        const given = { ...endpoint.example.parameters, [name]: Object(endpoint.example.parameters)[name] ?? 'UTC' }
        const values = schema.type === 'integer' ? { ...given, [name]: 3 } : given
        return aliases.map((alias) => ({ address: `${slug}${path}`, name, alias, values }))
      }),
    ),
  )
}

describe('an alias of a parameter', () => {
  it('an alias of a parameter makes the same call as its name, in a query and in a body', () => {
    const all = aliased()
    assert.ok(all.length >= 60, `${all.length}`)
    for (const { address, name, alias, values } of all) {
      const { [name]: value, ...others } = values
      const expected = check(address, bodyParameters(values))
      const renamed = { ...others, [alias]: value }
      assert.deepEqual(check(address, bodyParameters(renamed)), expected, `${address} ${alias}`)
      const query = new URLSearchParams(
        Object.entries(renamed).map(([key, text]): [string, string] => [key, String(text)]),
      )
      assert.deepEqual(checkQuery(address, String(query)), expected, `${address} ${alias}`)
      assert.deepEqual(expected.extra, [])
    }
  })

  it('an alias of a parameter beside its name, or beside another alias, is refused, even with the same value', () => {
    for (const { address, name, alias, values } of aliased()) {
      const error = refusal(() => check(address, bodyParameters({ ...values, [alias]: values[name] })))
      assert.equal(error.details.tokens?.param, alias)
      assert.match(error.message, new RegExp(`${alias} is invalid: it is another name of ${name}, which is given too`))
    }
    assert.match(
      refusal(() => checkQuery('weather/current', 'lat=1&latitude=1&lng=2')).message,
      /lat is invalid: it is another name of latitude,/,
      'the alias came first',
    )
    assert.equal(
      refusedParameter(() => checkQuery('weather/current', 'latitude=1&lon=2&lng=2')),
      'lng',
    )
    assert.match(refusal(() => checkQuery('weather/current', 'lat=1&lat=1&lng=2')).message, /lat .*more than once/)
  })

  it('an alias of a parameter is no name of another parameter, of a credential or of what the upstream reserves', () => {
    const plain = (name: string) => name.toLowerCase().replace(/[ .-]/g, '_')
    for (const { upstream, endpoints } of catalog.values()) {
      for (const { path, parameters } of endpoints.values()) {
        const names = parameters.flatMap(({ name, aliases }) => [name, ...aliases]).map(plain)
        const taken = [...(upstream.reservedParameters ?? []), upstream.credential?.name ?? ''].map(plain)
        assert.equal(new Set([...names, ...taken]).size, names.length + new Set(taken).size, path)
      }
    }
  })

  it('an alias of a parameter is accepted by every API that has the same parameter under another name', () => {
    const groups = [
      ['latitude', 'lat'],
      ['longitude', 'lon', 'lng'],
      ['country', 'countryCode', 'country_code'],
      ['limit', 'max', 'amount', 'per_page'],
      ['q', 'query'],
      ['timezone', 'tzid'],
    ]
    for (const { slug, endpoints } of catalog.values()) {
      for (const { path, parameters } of endpoints.values()) {
        for (const { name, aliases } of parameters) {
          const group = groups.find((names) => names.includes(name)) ?? []
          const missing = group.filter((other) => other !== name && !aliases.includes(other))
          assert.deepEqual(missing, [], `${slug}${path} ${name}`)
        }
      }
    }
  })

  it('a refusal contains an alias as the caller wrote it, and lists the aliases of a missing parameter', () => {
    const message = (query: string) => refusal(() => checkQuery('sunrise-sunset/times', query)).message
    assert.match(message('latitude=91&lon=0'), /^Parameter latitude is invalid: it must be a number from -90 to 90\.$/)
    assert.match(message('lat=1&lon=x'), /^Parameter lon is invalid/)
    assert.match(message('lat=1&lng=1&timezone=Nowhere'), /^Parameter timezone is invalid/)
    assert.match(message('lat=1'), /^Parameter lng is invalid: .*it may also be given as longitude or lon\.$/)
    assert.match(message('lat=1&longitud=1'), /longitud is not known; did you mean longitude\?$/)
    assert.match(message('lat=1&LON=1'), /^Parameter lon is invalid: its name is spelled lon, not LON\.$/)
    assert.match(message('lat=1&lon[]=1'), /^Parameter lon is invalid: its name is spelled lon, not lon\[\]\.$/)
  })
})

describe('an undeclared parameter', () => {
  it('an undeclared parameter is forwarded as given, in order, repeated names included', () => {
    const { extra } = checkQuery('mock-data/posts', 'z=1&id=1&a=%26x%3D1&z=2&empty=&flag&plus=a+b%2Bc')
    assert.deepEqual(extra, [
      ['z', '1'],
      ['a', '&x=1'],
      ['z', '2'],
      ['empty', ''],
      ['flag', ''],
      ['plus', 'a b+c'],
    ])
  })

  it('an undeclared parameter of a body is forwarded as text, and refused when it has no text form', () => {
    assert.deepEqual(check('mock-data/posts', bodyParameters({ id: 1, n: 2.5, f: false, t: 'x' })).extra, [
      ['n', '2.5'],
      ['f', 'false'],
      ['t', 'x'],
    ])
    for (const value of [{}, [{}], [null], [['a']], Number.POSITIVE_INFINITY, Number.NaN]) {
      refusedParameter(() => check('mock-data/posts', bodyParameters({ id: 1, n: value })))
    }
  })

  it('an undeclared parameter of a body that is null is not given, and a list is one parameter after another', () => {
    const given = bodyParameters({ id: 1, tag: ['a', 2, true], none: null, empty: [] })
    assert.deepEqual(check('mock-data/posts', given).extra, [
      ['tag', 'a'],
      ['tag', '2'],
      ['tag', 'true'],
    ])
    assert.equal(check('geocoding/search', bodyParameters({ q: 'Berlin', limit: null })).parameters.limit, 5)
  })

  it('an undeclared parameter whose name holds a credential is refused, in any spelling, and so is one that the upstream authenticates by', () => {
    const names = ['apikey', 'API_KEY', 'api-key', 'X-Api-Key', 'x_api_key', 'access_token', 'authorization']
    for (const name of [...names, 'client_secret', 'callback', 'api.key']) {
      assert.equal(
        refusedParameter(() => checkQuery('mock-data/posts', `id=1&${name}=evil`)),
        name,
      )
    }
    assert.equal(
      refusedParameter(() => checkQuery('ip-lookup/lookup', 'KEY=evil')),
      'KEY',
    )
    assert.equal(
      refusedParameter(() => checkQuery('trivia/questions', 'token=evil')),
      'token',
    )
  })

  it('an undeclared parameter that only other upstreams authenticate by is forwarded', () => {
    const { extra } = checkQuery('mock-data/posts', 'id=1&key=a&token=b&auth=c&client_id=d&lang=e')
    assert.deepEqual(
      extra.map(([name]) => name),
      ['key', 'token', 'auth', 'client_id', 'lang'],
    )
  })

  it('an undeclared parameter is never a key of this service, in a name or a value, declared or not', () => {
    const key = `agw_live_${'a'.repeat(49)}`
    for (const query of [
      `q=Berlin&x=${key}`,
      `q=Berlin&${key}=1`,
      `q=${key}`,
      `q=Berlin&x=see+AGW_TEST_${'a'.repeat(49)}`,
    ]) {
      const error = refusal(() => checkQuery('geocoding/search', query))
      assert.equal(error.code, 'INVALID_PARAMETER')
      assert.ok(!JSON.stringify([error.message, error.details]).includes(key))
    }
  })

  it('an undeclared parameter has one name however it is spelled: what the endpoint declares, reserves or sets is refused', () => {
    for (const [address, query] of [
      ['geocoding/search', 'q=Berlin&Limit=50'],
      ['geocoding/search', 'q=Berlin&limit[]=50'],
      ['geocoding/search', 'q=Berlin&Format=xml'],
      ['geocoding/search', 'q=Berlin&format[]=xml'],
      ['geocoding/search', 'q=Berlin&json.callback=f'],
      ['trivia/questions', 'amount=1&AMOUNT=50'],
      ['trivia/questions', 'amount=1&Encode[x]=base64'],
      ['development-indicators/gdp', 'country=US&mrnev=1&Format=xml'],
      ['weather/current', 'latitude=1&longitude=1&past[days=92'],
    ] as const) {
      assert.equal(refusal(() => checkQuery(address, query)).code, 'INVALID_PARAMETER', query)
    }
  })

  it('an undeclared parameter that makes one request weigh as several of the upstream’s limits is refused', () => {
    for (const slug of ['weather', 'air-quality']) {
      for (const name of ['hourly', 'daily', 'past_days', 'models', 'Start_Date', 'minutely_15']) {
        assert.equal(
          refusedParameter(() => checkQuery(`${slug}/current`, `latitude=1&longitude=1&${name}=x`)),
          name,
        )
      }
    }
  })

  it('an undeclared parameter that the gateway itself sends to the upstream is refused', () => {
    for (const [address, query] of [
      ['weather/current', 'latitude=1&longitude=1'],
      ['geocoding/search', 'q=Berlin'],
    ] as const) {
      const endpoint = catalog.get(address.split('/')[0] ?? '')?.endpoints.get(`/${address.split('/')[1]}`)
      const { parameters } = checkQuery(address, query)
      const [request] = [endpoint?.declaration.request(parameters, CONTEXT)].flat()
      const own = Object.keys(request?.query ?? {}).filter((name) => !Object.hasOwn(parameters, name))
      assert.ok(own.length > 0)
      for (const name of own) {
        assert.equal(
          refusedParameter(() => checkQuery(address, `${query}&${name}=evil`)),
          name,
        )
      }
    }
  })

  it('an undeclared parameter is one of at most 20 names, and all of them take at most 2 KB of the query string', () => {
    const query = (count: number) => Array.from({ length: count }, (_, index) => `p${index}=1`).join('&')
    assert.equal(checkQuery('mock-data/posts', `id=1&${query(20)}`).extra.length, 20)
    refusedParameter(() => checkQuery('mock-data/posts', `id=1&${query(21)}`))
    assert.equal(checkQuery('mock-data/posts', `id=1${'&p=1'.repeat(99)}`).extra.length, 99)
    refusedParameter(() => checkQuery('mock-data/posts', `id=1${'&p=1'.repeat(100)}`))
    assert.equal(checkQuery('mock-data/posts', `id=1&x=${'a'.repeat(2_046)}`).extra.length, 1)
    refusedParameter(() => checkQuery('mock-data/posts', `id=1&x=${'a'.repeat(2_047)}`))
    // Each takes three bytes of the query string.
    refusedParameter(() => checkQuery('mock-data/posts', `id=1&x=${'!'.repeat(700)}`))
  })

  it('an undeclared parameter is named in a refusal only when its name is plain', () => {
    const error = refusal(() => check('mock-data/posts', [{ name: '<script>', value: {} }]))
    assert.ok(!error.message.includes('<'))
    assert.deepEqual(error.details.tokens, {})
  })
})

describe('a query', () => {
  it('a query gives back what URLSearchParams wrote, whatever the texts are', () => {
    const text = fc.string({ unit: 'grapheme' }).filter((value) => !/[\0\ufffe\uffff]/.test(value))
    fc.assert(
      fc.property(fc.array(fc.tuple(text, text), { maxLength: 20 }), (pairs) => {
        const given = queryParameters(String(new URLSearchParams(pairs)))
        // A pair without name and value writes "=", which names nothing either way.
        assert.deepEqual(
          given.map(({ name, value }) => [name, value]),
          pairs,
        )
      }),
      { numRuns: 1_000 },
    )
  })

  it('a query that is not percent-encoded UTF-8, or holds NUL or non-characters, is INVALID_ENCODING', () => {
    for (const query of [
      'a=%',
      'a=%zz',
      'a=%c3%28',
      'a=%ed%a0%80',
      'a=%c0%80',
      'a=%00',
      '%00=a',
      'a=%ef%bf%be',
      'a=%ff',
      'a=%f4%90%80%80',
    ]) {
      assert.equal(refusal(() => queryParameters(query)).code, 'INVALID_ENCODING', query)
    }
  })

  it('a query decodes once', () => {
    assert.deepEqual(queryParameters('a=%252e%252e'), [{ name: 'a', value: '%2e%2e' }])
  })
})

describe('a body of parameters', () => {
  it('a body of parameters is an object or nothing', () => {
    assert.deepEqual(bodyParameters(undefined), [])
    for (const body of [null, [], 'x', 7, true])
      assert.equal(refusal(() => bodyParameters(body)).code, 'VALIDATION_ERROR')
  })
})

describe('the request line that a call becomes', () => {
  it('the request line that a call becomes is at most 4 KB, whatever the parameters are made of', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme', minLength: 1, maxLength: 500 }).filter((text) => text.trim() !== ''),
        fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.string({ unit: 'grapheme', maxLength: 400 }))),
        (q, pairs) => {
          const { api, endpoint } = findTarget('code-host-search/repos')
          const given = [['q', q], ...pairs].map(([name = '', value]) => ({ name, value }))
          let checked: CheckedParameters
          try {
            checked = checkParameters({ api, endpoint }, given, CONTEXT)
          } catch (error) {
            assert.ok(error instanceof GatewayError)
            return
          }
          for (const request of [endpoint.declaration.request(checked.parameters, CONTEXT)].flat()) {
            const { path } = requestTarget(api.baseUrl, request, checked.extra)
            assert.ok(`GET ${path} HTTP/1.1\r\n`.length <= 4_096)
          }
        },
      ),
      { numRuns: 300 },
    )
  })

  it('the request line that a call becomes writes numbers without exponents', () => {
    const { api, endpoint } = findTarget('weather/current')
    const { parameters } = checkQuery('weather/current', 'latitude=5e-7&longitude=-1e-7')
    const [request] = [endpoint.declaration.request(parameters, CONTEXT)].flat()
    const { origin, path } = requestTarget(api.baseUrl, request ?? assert.fail(), [])
    const { searchParams } = new URL(origin + path)
    assert.deepEqual([searchParams.get('latitude'), searchParams.get('longitude')], ['0.0000005', '-0.0000001'])
  })
})

describe('a number in a body', () => {
  const checkBody = (address: string, text: string): CheckedParameters =>
    check(address, bodyParameters(parseJsonBody(Buffer.from(text))))

  it('a number in a body that is not declared is forwarded with the digits that were written', () => {
    const written = ['1.10', '-0', '1e3', '1E+3', '52.0', '0.0000001', '5e-7', '9007199254740991', '0.1', '-7']
    for (const text of written) {
      assert.deepEqual(checkBody('mock-data/posts', `{"id":1,"cursor":${text}}`).extra, [['cursor', text]])
    }
    assert.deepEqual(
      checkBody('mock-data/posts', `{"id":1,"list":[${written.join()}]}`).extra,
      written.map((text) => ['list', text]),
    )
  })

  it('a number in a body that is declared is its value, however it is written', () => {
    for (const [text, value] of [
      ['52.0', 52],
      ['5.2e1', 52],
      ['-0', 0],
      ['-0.0', 0],
      ['52.52', 52.52],
    ] as const) {
      const { latitude } = checkBody('weather/current', `{"latitude":${text},"longitude":0}`).parameters
      assert.ok(Object.is(latitude, value), text)
    }
    assert.equal(checkBody('mock-data/posts', '{"id":1.0}').parameters.id, 1)
  })

  it('a whole number as text that a double cannot hold is no value of a number', () => {
    const numbers = [...catalog.values()].flatMap((api) =>
      [...api.endpoints.values()].flatMap(({ path, parameters }) =>
        parameters
          .filter(({ schema }) => schema.type === 'integer' || schema.type === 'number')
          .map(({ name }) => [`${api.slug}${path}`, name] as const),
      ),
    )
    assert.ok(numbers.length > 10)
    for (const [address, name] of numbers) {
      for (const text of ['9007199254740993', '-9007199254740993', '1e21', '1.0000000000000000001'])
        assert.equal(refusal(() => checkQuery(address, `${name}=${text}`)).code, 'INVALID_PARAMETER', address)
    }
  })

  it('a number in a body or a query with all digits of its double is that double, and with others it is refused', () => {
    const held = [
      '52.520000000000003',
      '52.52000000000000312639',
      '0.1000000000000000055511',
      '1e-5',
      '0.30000000000000004',
    ]
    const lost = ['52.520000000000001234', '0.1234567890123456789', '3.14159265358979323846', '1.0000000000000000001']
    const body = (text: string) =>
      checkBody('weather/current', `{"latitude":${text},"longitude":0}`).parameters.latitude
    const query = (text: string) => checkQuery('weather/current', `latitude=${text}&longitude=0`).parameters.latitude
    for (const read of [body, query]) {
      for (const text of held) assert.equal(read(text), Number(text), text)
      for (const text of lost) assert.throws(() => read(text), GatewayError, text)
    }
    for (const [text, value] of [
      ['.5', 0.5],
      ['-.5', -0.5],
      ['52.', 52],
    ] as const)
      assert.equal(query(text), value)
  })
})
