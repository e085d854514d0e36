import assert from 'node:assert/strict'
import { it } from 'node:test'
import { readAllowed } from '../../src/accounts/credential-limits.ts'
import { loadCatalog } from '../../src/catalog/catalog.ts'

const catalog = await loadCatalog(new Map())
const apisOf = (apis: string[]) => readAllowed(catalog, { apis }).apis

it('the APIs of a key are sorted, each once', () => {
  assert.deepEqual(apisOf(['weather', 'currency', 'weather']), ['currency', 'weather'])
})

it('the refusal of an unknown API contains its name and the nearest known name, but not a text that cannot be a name', () => {
  assert.throws(() => apisOf(['weather', 'currrency']), {
    code: 'VALIDATION_ERROR',
    message: 'The catalog has no API currrency; did you mean currency?',
  })
  assert.throws(() => apisOf(['elephants']), { message: 'The catalog has no API elephants.' })
  const trivia = catalog.get('trivia') ?? assert.fail()
  catalog.set('trivia', { ...trivia, isSwitchedOff: true })
  assert.throws(() => apisOf(['triva']), { message: 'The catalog has no API triva.' })
  assert.throws(() => apisOf(['weather', '<b>']), { message: 'Item 2 of the list of APIs is not the name of an API.' })
})

it('addresses are normalized, without duplicates and in their order, and the refusal states which item is not an address', () => {
  const addressesOf = (addresses: string[] | null) => readAllowed(catalog, { addresses }).addresses
  assert.deepEqual(addressesOf(['203.0.113.9/24', '2001:DB8::7', '203.0.113.0/24', '::ffff:192.0.2.1', '192.0.2.1']), [
    ...['203.0.113.0/24', '2001:db8::7', '192.0.2.1'],
  ])
  assert.equal(addressesOf(null), null)
  assert.ok(!('addresses' in readAllowed(catalog, {})))
  assert.throws(() => addressesOf(['203.0.113.9', '<b>']), {
    code: 'VALIDATION_ERROR',
    message: 'Item 2 of the list of addresses is not an IPv4 or IPv6 address or network.',
  })
})
