import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import fc from 'fast-check'
import { bodyParameters, queryParameters } from '../../src/admission/call-input.ts'
import { type CheckedParameters, checkParameters, type GivenParameter } from '../../src/admission/parameters.ts'
import { type Catalog, loadCatalog } from '../../src/catalog/catalog.ts'
import { GatewayError } from '../../src/errors.ts'

const CONTEXT = { now: Date.UTC(2026, 0, 2), callerAddress: '203.0.113.9' }
let catalog: Catalog
before(async () => {
  catalog = await loadCatalog(new Map())
})

function check(address: string, given: GivenParameter[]): CheckedParameters {
  const [, slug = '', path = ''] = /^([^/]+)(\/.*)$/.exec(address) ?? []
  const api = catalog.get(slug)
  const endpoint = api?.endpoints.get(path)
  if (!api || !endpoint) throw new Error(`no endpoint ${address}`)
  return checkParameters(api, endpoint, given, CONTEXT)
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
  it('is plain decimal notation within its bounds', () => {
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
    ] as const) {
      assert.equal(checkQuery('weather/current', `latitude=${text}&longitude=0`).parameters.latitude, value)
    }
  })

  const bad = [
    '',
    '0',
    '101',
    '-1',
    '1.5',
    '1e1',
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
  const worse = ['1'.repeat(400), '%D9%A1', '\u0661', 'true', 'null', '[1]', '1;2', '1%0A', '--1', '.5', '5.']
  for (const text of [...bad, ...worse]) {
    it(`is refused as id=${text.slice(0, 20)}, with the parameter's name`, () => {
      assert.equal(
        refusedParameter(() => checkQuery('mock-data/posts', `id=${text}`)),
        'id',
      )
    })
  }

  it('is never anything else than the number that was written', () => {
    fc.assert(
      fc.property(fc.double({ min: -90, max: 90, noNaN: true }), (value) => {
        const text = String(value)
        let latitude: unknown
        try {
          latitude = checkQuery('weather/current', `latitude=${text}&longitude=0`).parameters.latitude
        } catch (error) {
          assert.ok(error instanceof GatewayError && /e|-0$|\.\d{18,}/.test(text), text)
          return
        }
        assert.equal(latitude, Number(text))
      }),
      { numRuns: 2_000 },
    )
  })

  it('outside its bounds is refused', () => {
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

describe('a number in a body', () => {
  it('may be a JSON number or the same text, and nothing else', () => {
    assert.equal(check('mock-data/posts', bodyParameters({ id: 7 })).parameters.id, 7)
    assert.equal(check('mock-data/posts', bodyParameters({ id: '7' })).parameters.id, 7)
    for (const id of [true, null, [7], { n: 7 }, 7.5, Number.POSITIVE_INFINITY, '7 ', '']) {
      assert.equal(
        refusedParameter(() => check('mock-data/posts', bodyParameters({ id }))),
        'id',
      )
    }
  })
})

describe('a declared parameter', () => {
  it('that is required and missing is refused by name', () => {
    assert.equal(
      refusedParameter(() => checkQuery('weather/current', 'latitude=1')),
      'longitude',
    )
  })

  it('given twice is refused, in a query and in query and body together', () => {
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

  it('has its name alone: brackets and letter case make another name', () => {
    for (const query of ['id[]=1', 'id[a]=1', 'ID=1']) {
      assert.equal(
        refusedParameter(() => checkQuery('mock-data/posts', query)),
        'id',
        query,
      )
    }
  })

  it('cannot be reached by a name with blanks around it, which some upstreams drop, nor can a reserved one', () => {
    for (const query of ['amount=1&+encode=base64', 'amount=1&+category=32', 'amount=1&token%09=a', 'amount=1&%20=a']) {
      assert.throws(() => checkQuery('trivia/questions', query), /blanks around it/, query)
    }
  })

  it('that goes into a path is one segment; dots alone are refused', () => {
    for (const text of ['.', '..', '%2e%2e', '%2E', '']) {
      assert.equal(
        refusedParameter(() => checkQuery('code-host-user/profile', `username=${text}`)),
        'username',
        text,
      )
    }
  })

  it('has its default when it is not given', () => {
    assert.equal(checkQuery('geocoding/search', 'q=Berlin').parameters.limit, 5)
  })
})

describe('an undeclared parameter', () => {
  it('is forwarded as given, in order, repeated names included', () => {
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

  it('of a body is forwarded as text, and refused when it has no text form', () => {
    assert.deepEqual(check('mock-data/posts', bodyParameters({ id: 1, n: 2.5, f: false, t: 'x' })).extra, [
      ['n', '2.5'],
      ['f', 'false'],
      ['t', 'x'],
    ])
    for (const value of [null, [], {}, Number.POSITIVE_INFINITY, Number.NaN]) {
      refusedParameter(() => check('mock-data/posts', bodyParameters({ id: 1, n: value })))
    }
  })

  it('with a name that carries credentials or changes the answer is refused, in any letter case', () => {
    for (const name of [
      'apikey',
      'API_KEY',
      'api-key',
      'key',
      'Token',
      'access_token',
      'auth',
      'authorization',
      'callback',
      'client_secret',
    ]) {
      assert.equal(
        refusedParameter(() => checkQuery('mock-data/posts', `id=1&${name}=evil`)),
        name,
      )
    }
  })

  it('that the gateway itself sends to the upstream is refused', () => {
    for (const [address, query] of [
      ['weather/current', 'latitude=1&longitude=1'],
      ['geocoding/search', 'q=Berlin'],
    ] as const) {
      const endpoint = catalog.get(address.split('/')[0] ?? '')?.endpoints.get(`/${address.split('/')[1]}`)
      const { parameters } = checkQuery(address, query)
      const [request] = [endpoint?.endpoint.request(parameters, CONTEXT)].flat()
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

  it('is one of at most 100 parameters', () => {
    const query = (count: number) => Array.from({ length: count }, (_, index) => `p${index}=1`).join('&')
    assert.equal(checkQuery('mock-data/posts', `id=1&${query(99)}`).extra.length, 99)
    refusedParameter(() => checkQuery('mock-data/posts', `id=1&${query(100)}`))
  })

  it('is named in a refusal only when its name is plain', () => {
    const error = refusal(() => check('mock-data/posts', [{ name: '<script>', value: [] }]))
    assert.ok(!error.message.includes('<'))
    assert.deepEqual(error.details.tokens, {})
  })
})

describe('a query', () => {
  it('gives back what URLSearchParams wrote, whatever the texts are', () => {
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

  it('that is not percent-encoded UTF-8, or holds NUL or non-characters, is INVALID_ENCODING', () => {
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

  it('decodes once', () => {
    assert.deepEqual(queryParameters('a=%252e%252e'), [{ name: 'a', value: '%2e%2e' }])
  })
})

describe('a body of parameters', () => {
  it('is an object or nothing', () => {
    assert.deepEqual(bodyParameters(undefined), [])
    for (const body of [[], 'x', 7, true]) assert.equal(refusal(() => bodyParameters(body)).code, 'VALIDATION_ERROR')
  })
})
