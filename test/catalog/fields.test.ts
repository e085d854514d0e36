import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import Type, { type Static } from 'typebox'
import { Compile } from 'typebox/compile'
import { field, record, required } from '../../src/catalog/fields.ts'

/**
 * `true` when the two types are the same; anything else does not compile where `true` is expected.
 */
type Same<One, Other> = (<T>() => T extends One ? 1 : 2) extends <T>() => T extends Other ? 1 : 2 ? true : false

const description = 'What it is'

/** Every kind of field. If the answer lacks a value, the field is null or empty. */
const everyKind = record({
  text: field.text('a.text', description),
  filled: field.filledText('a.text', description),
  decoded: field.htmlDecoded('a.text', description),
  number: field.number('a.number', description),
  numeric: field.numeric('a.number', description),
  whole: field.wholeNumber('a.number', description),
  integer: field.integer('a.number', description),
  flag: field.flag('a.flag', description),
  nested: field.record('a', description, { text: field.text('text', description) }),
  maybe: field.nullableRecord('a', description, { text: field.text('text', description) }),
  halved: field.computed(Type.Number({ description }), ({ a }) => (typeof a === 'number' ? a / 2 : 0)),
})

/** A record that is undefined if one of its required fields is missing. */
const strict = record({
  id: required.integer('id', description),
  name: field.text('name', description),
  entries: required.records('entries', description, {
    key: required.text('key', description),
    value: field.number('value', description),
  }),
  names: field.texts('a.list', description),
})

test('a field says its type and description, and the schema of the record is written from them in their order', () => {
  const { schema } = record({
    name: field.text('x', 'Name of it'),
    size: field.number('y', 'Metres'),
    id: required.integer('id', 'Number of it'),
    tags: field.texts('tags', 'Subjects'),
    place: field.record('place', 'Where it is', { city: field.text('city', 'City') }),
    owner: field.nullableRecord('owner', 'Who has it', { login: field.text('login', 'Name') }),
    parts: field.records('parts', 'Its parts', { kind: required.text('kind', 'Kind') }),
  })
  const text = (description: string) => ({ anyOf: [{ type: 'string', description }, { type: 'null' }] })
  const object = (properties: object, description?: string) => ({
    type: 'object',
    required: Object.keys(properties),
    properties,
    ...(description === undefined ? {} : { description }),
  })
  assert.deepEqual(
    JSON.parse(JSON.stringify(schema)),
    object({
      name: text('Name of it'),
      size: { anyOf: [{ type: 'number', description: 'Metres' }, { type: 'null' }] },
      id: { type: 'integer', description: 'Number of it' },
      tags: { type: 'array', items: { type: 'string' }, description: 'Subjects' },
      place: object({ city: text('City') }, 'Where it is'),
      owner: { anyOf: [object({ login: text('Name') }, 'Who has it'), { type: 'null' }] },
      parts: {
        type: 'array',
        items: object({ kind: { type: 'string', description: 'Kind' } }),
        description: 'Its parts',
      },
    }),
  )
})

test('a field reads its value by a name, by names joined with dots, or by a function of the source', () => {
  const { read } = record({
    shallow: field.text('a', description),
    deep: field.text('b.c.d', description),
    either: field.text(({ x, y }) => x ?? y, description),
  })
  const data = read({ a: 'one', b: { c: { d: 'two' } }, y: 'three' })
  assert.deepEqual(data, { shallow: 'one', deep: 'two', either: 'three' })
  assert.deepEqual(Object.keys(data), ['shallow', 'deep', 'either'])
})

test('a value of another kind is null', () => {
  const kinds = record({
    text: field.text('v', description),
    filled: field.filledText('v', description),
    decoded: field.htmlDecoded('v', description),
    number: field.number('v', description),
    numeric: field.numeric('v', description),
    whole: field.wholeNumber('v', description),
    integer: field.integer('v', description),
    flag: field.flag('v', description),
  })
  const none = {
    text: null,
    filled: null,
    decoded: null,
    number: null,
    numeric: null,
    whole: null,
    integer: null,
    flag: null,
  }
  for (const v of [null, undefined, [], {}, [1], Number.NaN, Number.POSITIVE_INFINITY]) {
    assert.deepEqual(kinds.read({ v }), none)
  }
  assert.deepEqual(kinds.read({ v: ' &amp; ' }), { ...none, text: ' &amp; ', filled: ' &amp; ', decoded: ' & ' })
  assert.deepEqual(kinds.read({ v: ' ' }), { ...none, text: ' ', decoded: ' ' })
  assert.deepEqual(kinds.read({ v: '1.5' }), { ...none, text: '1.5', filled: '1.5', decoded: '1.5', numeric: 1.5 })
  assert.deepEqual(kinds.read({ v: 1.5 }), { ...none, number: 1.5, numeric: 1.5 })
  assert.deepEqual(kinds.read({ v: 2 }), { ...none, number: 2, numeric: 2, whole: 2, integer: 2 })
  assert.deepEqual(kinds.read({ v: false }), { ...none, flag: false })
  // In quadratic time this would take minutes.
  assert.equal(kinds.read({ v: `${'1'.repeat(200_000)}!` }).numeric, null)
})

test('a list of records leaves out what is no object, and objects in which a required field is missing', () => {
  const list = record({
    all: field.records('list', description, { key: field.text('key', description) }),
    keyed: field.records('list', description, { key: required.text('key', description) }),
  })
  assert.deepEqual(list.read({ list: [{ key: 'a' }, 'b', null, [], { key: 1 }] }), {
    all: [{ key: 'a' }, { key: null }],
    keyed: [{ key: 'a' }],
  })
  assert.equal(list.read({ list: { key: 'a' } }), undefined)
})

test('a list with a record of each item has a record of nulls for an item that is no object', () => {
  const list = record({ of: required.recordOfEach('list', description, { key: field.text('key', description) }) })
  assert.deepEqual(list.read({ list: [{ key: 'a' }, 'b', null] }), { of: [{ key: 'a' }, { key: null }, { key: null }] })
  assert.equal(list.read({ list: {} }), undefined)
})

test('a required list counts as missing if all its items have another form, and as present if it is empty', () => {
  const of = { key: required.text('key', description) }
  for (const kind of ['records', 'recordOfEach'] as const) {
    const { read } = record({ of: required[kind]('list', description, of) })
    for (const list of [['a'], [null, 1], [[]]]) assert.equal(read({ list }), undefined, JSON.stringify(list))
    assert.equal(read({ list: [{ name: 'a' }, { key: 1 }] }), undefined)
    assert.deepEqual(read({ list: [] }), { of: [] })
    assert.deepEqual(read({ list: [{ key: 'a' }, { key: 1 }] }), { of: [{ key: 'a' }] })
  }
})

test('a required list counts as missing if its items have members and none of them can be read', () => {
  const of = { key: field.text('key', description), deep: field.record('deep', description, { no: field.number('no', description) }), tags: field.texts('tags', description) } // biome-ignore format: fields
  for (const kind of ['records', 'recordOfEach'] as const) {
    const { read } = record({ of: required[kind]('list', description, of) })
    for (const list of [
      [{ name: 'a' }, { title: 'b' }],
      [{ key: { text: 'a' }, deep: { number: 1 }, tags: [{ t: 1 }] }],
    ])
      assert.equal(read({ list }), undefined, JSON.stringify(list))
    for (const list of [[{}], [{ key: null, other: '' }], [{ name: 'a' }, { key: 'b' }], [{ deep: { no: 0 } }]])
      assert.equal(read({ list })?.of.length, list.length, JSON.stringify(list))
  }
})

test('a list is empty if it is absent or empty, and missing if what is there cannot be read', () => {
  const lists = {
    texts: record({ of: field.texts('list', description) }),
    integers: record({ of: field.integers('list', description) }),
    records: record({ of: field.records('list', description, { key: required.text('key', description) }) }),
  }
  for (const { read } of Object.values(lists)) {
    for (const source of [{}, { list: null }, { list: [] }]) assert.deepEqual(read(source), { of: [] })
    for (const list of ['a', { a: 1 }, 1, [null], [{}], [[1]], [true]]) assert.equal(read({ list }), undefined)
  }
  const named = record({ of: field.records('list', description, { key: field.text('key', description) }) })
  for (const list of [[{ name: 'a' }], [{ key: ['a'] }, { key: 1 }]]) assert.equal(named.read({ list }), undefined)
  for (const list of [[{}], [{ key: null, other: undefined }], [{ name: 'a' }, { key: 'b' }]])
    assert.equal(named.read({ list })?.of.length, list.length)
  assert.deepEqual(lists.texts.read({ list: ['a', 1] }), { of: ['a'] })
  assert.deepEqual(lists.integers.read({ list: ['a', 1] }), { of: [1] })
})

test('a nullable record is null if there is no object; a nested record then has fields that are null', () => {
  const empty = everyKind.read({ a: ['x'] })
  assert.equal(empty.maybe, null)
  assert.deepEqual(empty.nested, { text: null })
  assert.deepEqual(everyKind.read({ a: {} }).maybe, { text: null })
})

test('a record without one of its required fields is undefined', () => {
  const entries = [{ key: 'a', value: 1 }, { key: null }, { value: 2 }]
  assert.deepEqual(strict.read({ id: 1, entries }), { id: 1, name: null, entries: [{ key: 'a', value: 1 }], names: [] })
  for (const source of [undefined, null, [], { entries }, { id: '1', entries }, { id: 1 }, { id: 1, entries: {} }]) {
    assert.equal(strict.read(source), undefined)
  }
})

test('a required field whose value is false, zero or empty is there', () => {
  const values = record({
    flag: required.flag('flag', description),
    number: required.number('number', description),
    text: required.text('text', description),
    computed: required.computed(Type.Boolean(), () => false),
  })
  const data = { flag: false, number: 0, text: '' }
  assert.deepEqual(values.read(data), { ...data, computed: false })
})

test('a field that the document calls nullable may be one without which there is no record', () => {
  const { schema, read } = record({ id: required.notNull(field.integer('id', description)) })
  assert.deepEqual(read({ id: 0 }), { id: 0 })
  assert.equal(read({ id: null }), undefined)
  assert.deepEqual(
    schema.properties.id.anyOf.map(({ type }) => type),
    ['integer', 'null'],
  )
})

test('names lead only to own members of objects', () => {
  const inherited = record({
    constructorName: field.text('constructor.name', description),
    length: field.number('list.length', description),
    proto: field.nullableRecord('__proto__', description, { a: field.number('a', description) }),
  })
  assert.deepEqual(inherited.read({ list: [1, 2] }), { constructorName: null, length: null, proto: null })
  assert.deepEqual(inherited.read(JSON.parse('{"__proto__":{"a":1}}')), {
    constructorName: null,
    length: null,
    proto: { a: 1 },
  })
})

test('any JSON gives data that fit the schema, or undefined if a required field is missing', () => {
  const fitsEveryKind = Compile(everyKind.schema)
  const fitsStrict = Compile(strict.schema)
  const names = fc.constantFrom('a', 'id', 'name', 'entries', 'key', 'text', 'list', '__proto__', 'constructor')
  const { source } = fc.letrec((tie) => ({
    source: fc.oneof(
      { depthSize: 'small' },
      fc.jsonValue(),
      fc.array(tie('source'), { maxLength: 3 }),
      fc.array(fc.tuple(names, tie('source')), { maxLength: 5 }).map((members) => Object.fromEntries(members)),
    ),
  }))
  fc.assert(
    fc.property(source, (json) => {
      assert.ok(fitsEveryKind.Check(everyKind.read(json)))
      const read = strict.read(json)
      assert.ok(read === undefined || fitsStrict.Check(read))
    }),
    { numRuns: 500 },
  )
})

test('the type of the data is the type of the schema, with undefined only if a field may be missing', () => {
  const isExact: Same<ReturnType<typeof everyKind.read>, Static<typeof everyKind.schema>> = true
  const isExactOrUndefined: Same<ReturnType<typeof strict.read>, Static<typeof strict.schema> | undefined> = true
  interface Strict {
    id: number
    name: string | null
    entries: { key: string; value: number | null }[]
    names: string[]
  }
  const isThatType: Same<Static<typeof strict.schema>, Strict> = true
  // @ts-expect-error: a value that may be undefined is no data until the code has handled that.
  const data: Strict = strict.read({ id: 1, entries: [] })
  // @ts-expect-error: a computed field's reader gives what its schema says.
  field.computed(Type.Number(), () => 'text')
  assert.ok(isExact && isExactOrUndefined && isThatType && data)
})
