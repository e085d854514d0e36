import Type, { type Static } from 'typebox'
import { isObject } from '../catalog/json.ts'
import { nearestName } from '../catalog/nearest-name.ts'
import { isName, sentence } from '../http/request/violation-words.ts'

const FIELDS_MAX = 20
const FIELD_LENGTH_MAX = 120
const ITEMS_MAX = 1_000

/** Arguments with which a tool returns only a part of the data. */
export const SelectionInput = {
  fields: Type.Optional(
    Type.Array(Type.String({ maxLength: FIELD_LENGTH_MAX }), {
      maxItems: FIELDS_MAX,
      description: 'Only these parts of the data: name, capital.city, results[].title',
    }),
  ),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: ITEMS_MAX,
      description: 'At most this many items of each top-level list of the data',
    }),
  ),
}
export const SelectionSchema = Type.Object(SelectionInput, { additionalProperties: false })
export type Selection = Static<typeof SelectionSchema>

/** The part of a data schema that this file reads. */
interface DataShape {
  type?: unknown
  properties?: Record<string, DataShape>
  patternProperties?: Record<string, DataShape>
  additionalProperties?: DataShape | boolean
  items?: DataShape
  anyOf?: DataShape[]
}

/**
 * The chosen members by name. `ALL` marks the end of a path. The items of a list are under `ITEMS`.
 */
const ALL = Symbol('all')
const ITEMS = '[]'
type Wanted = Map<string, Wanted | typeof ALL>

/** Whether `data` has a list as a direct member, which `limit` can shorten. */
export function hasTopList(schema: unknown): boolean {
  return Object.values(Object(schema).properties ?? {}).some((member) => itemsOf(member as DataShape) !== undefined)
}

/**
 * A sentence about the first path that the schema of the data does not have; undefined if it has
 * all.
 */
export function unknownField({ fields = [] }: Selection, schema: unknown): string | undefined {
  const unknown = fields.find((field) => !isKnown(schema as DataShape, stepsOf(field)))
  if (unknown === undefined) return undefined
  const paths = pathsOf(schema as DataShape)
  const meant = nearestPath(unknown, paths)
  const shown = isName(unknown.replaceAll(ITEMS, '')) ? ` ${unknown}` : ''
  const top = Object.keys(Object(schema).properties ?? {})
  const known = `the members of the data are ${top.join(', ')}`
  return sentence(
    `Argument fields names${shown || ' a path'}, which the data does not have; ${meant ? `did you mean ${meant}?` : known}`,
  )
}

/**
 * The chosen part of the data. First `limit` cuts lists, then `fields` selects members. Members
 * that the data lack are absent from the result.
 */
export function select(data: Record<string, unknown>, { fields, limit }: Selection): Record<string, unknown> {
  const limited = limit === undefined ? data : withFewerItems(data, limit)
  return fields ? (take(limited, wantedBy(fields.map(stepsOf))) as Record<string, unknown>) : limited
}

function withFewerItems(data: Record<string, unknown>, limit: number): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(data).map(([name, value]) => [name, Array.isArray(value) ? value.slice(0, limit) : value]),
  )
}

function take(value: unknown, wanted: Wanted | typeof ALL): unknown {
  if (wanted === ALL) return value
  if (Array.isArray(value)) {
    const ofItems = wanted.get(ITEMS) ?? ALL
    return value.map((item) => take(item, ofItems))
  }
  if (!isObject(value)) return value
  return Object.fromEntries(
    [...wanted].flatMap(([name, inner]) => (Object.hasOwn(value, name) ? [[name, take(value[name], inner)]] : [])),
  )
}

/** Builds the tree of chosen members. `a` and `a.b` together mean `a`. */
function wantedBy(paths: string[][]): Wanted | typeof ALL {
  if (paths.some(({ length }) => length === 0)) return ALL
  const byFirst = Map.groupBy(paths, ([first = '']) => first)
  return new Map([...byFirst].map(([first, each]) => [first, wantedBy(each.map(([, ...others]) => others))]))
}

/** Splits `list[].x` into `list`, `[]` and `x`. */
function stepsOf(field: string): string[] {
  return field.trim().replaceAll(ITEMS, `.${ITEMS}`).split('.')
}

function isKnown(shape: DataShape, [step, ...others]: string[]): boolean {
  if (step === undefined) return true
  return shapesOf(shape).some((each) => {
    const inner = memberOf(each, step)
    return inner !== undefined && isKnown(inner, others)
  })
}

function memberOf(shape: DataShape, step: string): DataShape | undefined {
  const { properties = {}, patternProperties = {}, additionalProperties, items } = shape
  if (step === '') return undefined
  if (isOpen(shape)) return {}
  if (step === ITEMS) return items
  if (Object.hasOwn(properties, step)) return properties[step]
  // The object is a map whose names are data: rates.USD.
  const [ofAll] = Object.values(patternProperties)
  return ofAll ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined)
}

/** Whether the document of an own API says nothing about the members of a value. */
function isOpen({ type = 'object', properties = {}, patternProperties, additionalProperties, items }: DataShape) {
  const isNamed = Object.keys(properties).length > 0 || patternProperties || typeof additionalProperties === 'object'
  return !isNamed && items === undefined && [type].flat().includes('object')
}

function shapesOf(shape: DataShape): DataShape[] {
  return shape.anyOf?.flatMap(shapesOf) ?? [shape]
}

function itemsOf(shape: DataShape): DataShape | undefined {
  return shapesOf(shape).find(({ items }) => items)?.items
}

/** Most paths that are compared with an unknown path. Own APIs may have very many. */
const PATHS_MAX = 500

/** Every path of the data, outer paths first. */
export function pathsOf(schema: DataShape): string[] {
  const paths: string[] = []
  let level: [path: string, shape: DataShape][] = [['', schema]]
  while (level.length > 0 && paths.length < PATHS_MAX) {
    level = level.flatMap(([path, shape]) => shapesOf(shape).flatMap((each) => innerPaths(path, each)))
    paths.push(...level.map(([path]) => path))
  }
  return paths.slice(0, PATHS_MAX)
}

function innerPaths(path: string, { properties = {}, items }: DataShape): [string, DataShape][] {
  if (items) return shapesOf(items).flatMap((each) => innerPaths(`${path}${ITEMS}`, each))
  return Object.entries(properties).map(([name, shape]) => [path === '' ? name : `${path}.${name}`, shape])
}

/**
 * The known path that an unknown path probably means: it has typing errors, lacks the marks of
 * lists, or lacks the members around it.
 */
function nearestPath(unknown: string, paths: string[]): string | undefined {
  const plain = unknown.replace(/\[\d*\]/g, '').replace(/^data\./, '')
  const same = paths.find((path) => path.replaceAll(ITEMS, '') === plain)
  if (same !== undefined) return same
  const last = plain.split('.').at(-1) ?? ''
  return nearestName(plain, paths) ?? paths.find((path) => path.split('.').at(-1) === last)
}
