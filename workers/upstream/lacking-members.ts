import type { Endpoint } from '../../src/catalog/endpoint.ts'
import { isObject, items } from '../../src/catalog/json.ts'
import type { Upstream } from '../../src/catalog/upstream.ts'
import type { KnownMembers } from '../../src/health/health-cache.ts'
import { CONFIRM_SCORE_EVERY_MS, LACKING_TO_PROBE } from '../../src/health/health-thresholds.ts'
import type { MembersSeen } from '../../src/health/record.ts'
import { isRecordedCall } from './recorded-call.ts'

/** How often a member that answers sometimes lack is noted again, milliseconds. */
const NOTE_ORDINARY_EVERY_MS = 86_400_000

/**
 * A member that the recorded answer has: `results[].name`, or `results[]` for the items of a list.
 */
interface Expected {
  name: string
  /** Undefined if nothing in the answer could have the member, as in an empty list. */
  isThere: (data: unknown, isRecorded: () => boolean) => boolean | undefined
}

export interface AnswerData {
  upstream: Upstream
  /** Path of the endpoint in the catalog. */
  path: string
  endpoint: Endpoint
  parameters: Record<string, unknown>
  data: Record<string, unknown>
}

/**
 * What this process knows of the upstream's members, and whether the answer is to a probe, which
 * decides.
 */
export interface Knowledge {
  known: KnownMembers | undefined
  isProbe: boolean
  now: number
}

/**
 * The members that matter and that an answer lacks or has. `isLacking`: it lacks a member that
 * other answers have always had.
 */
export function membersSeen(
  { upstream, path, endpoint, parameters, data }: AnswerData,
  { known, isProbe, now }: Knowledge,
): { seen: MembersSeen | undefined; isLacking: boolean } {
  const lacks: string[] = []
  const has: string[] = []
  let isLacking = false
  let isRecordedKnown: boolean | undefined
  const isRecorded = () => {
    isRecordedKnown ??= isRecordedCall(endpoint, parameters)
    return isRecordedKnown
  }
  for (const { name, isThere } of expectedOf(upstream, endpoint)) {
    const isHere = isThere(data, isRecorded)
    if (isHere === undefined) continue
    const member = known?.[`${path} ${name}`]
    if (isHere) {
      if (member && member.ordinary === undefined) has.push(name)
      continue
    }
    isLacking ||= member?.ordinary === undefined
    if (isProbe || member === undefined || isWorthReporting(member, now)) lacks.push(name)
  }
  const seen = lacks.length + has.length === 0 ? undefined : { endpoint: path, lacks, has }
  return { seen, isLacking }
}

/** Whether it matters that a further answer lacks a member. */
function isWorthReporting(member: KnownMembers[string], now: number): boolean {
  const { ordinary, since, good = 0, count = 0, probedAt = 0 } = member
  if (ordinary !== undefined) return now - ordinary >= NOTE_ORDINARY_EVERY_MS
  if (since !== undefined) return good > 0
  return count < LACKING_TO_PROBE || now - probedAt >= CONFIRM_SCORE_EVERY_MS
}

const expectedByEndpoint = new WeakMap<Endpoint, Expected[]>()

function expectedOf(upstream: Upstream, endpoint: Endpoint): Expected[] {
  const known = expectedByEndpoint.get(endpoint)
  if (known) return known
  const missing = new Set(upstream.mayLack)
  for (const { example } of Object.values(upstream.endpoints)) addNullNames(example.data, missing)
  // An API of an OpenAPI document has no recordings.
  const recorded = upstream.own ? [] : expectedIn(endpoint.data, endpoint.example.data)
  const expected = recorded.filter(({ name }) => {
    const lastName = name.split('.').at(-1) ?? ''
    return !missing.has(lastName.replace('[]', ''))
  })
  expectedByEndpoint.set(endpoint, expected)
  return expected
}

/**
 * Names of members that are null in a recorded answer of the API: one name is one thing in all its
 * endpoints.
 */
function addNullNames(value: unknown, names: Set<string>): void {
  for (const item of items(value)) addNullNames(item, names)
  if (!isObject(value)) return
  for (const [name, inner] of Object.entries(value)) {
    if (inner === null) names.add(name)
    else addNullNames(inner, names)
  }
}

/**
 * The members that the schema names and the recorded value has. Keys of a dictionary are no names.
 */
function expectedIn(schema: unknown, recorded: unknown): Expected[] {
  const { properties } = Object(nonNull(schema))
  if (!isObject(properties) || !isObject(recorded)) return []
  return Object.entries(properties).flatMap(([name, inner]): Expected[] => {
    const value = recorded[name]
    if (value === null || value === undefined) return []
    const { items: itemSchema } = Object(inner)
    if (itemSchema !== undefined) {
      const [first] = items(value)
      return first === undefined
        ? []
        : [itemsOf(name), ...expectedIn(itemSchema, first).map((deeper) => ofItems(name, deeper))]
    }
    const own: Expected = { name, isThere: (data) => isObject(data) && (data[name] ?? null) !== null }
    return [own, ...expectedIn(inner, value).map((deeper) => ofMember(name, deeper))]
  })
}

/**
 * Many lists may be empty, as in a search without hits. Only the answer to the recorded call must
 * have items.
 */
function itemsOf(name: string): Expected {
  return {
    name: `${name}[]`,
    isThere: (data, isRecorded) => {
      const isFilled = isObject(data) && items(data[name]).length > 0
      return isFilled || isRecorded() ? isFilled : undefined
    },
  }
}

function ofMember(name: string, { name: innerName, isThere }: Expected): Expected {
  return {
    name: `${name}.${innerName}`,
    // If the whole object is missing, the answer lacks the object, and no member of it.
    isThere: (data, isRecorded) =>
      isObject(data) && isObject(data[name]) ? isThere(data[name], isRecorded) : undefined,
  }
}

/** One item that has the member is enough: the answer has the recorded form. */
function ofItems(name: string, { name: innerName, isThere }: Expected): Expected {
  return {
    name: `${name}[].${innerName}`,
    isThere: (data, isRecorded) => {
      const all = (isObject(data) ? items(data[name]) : []).map((item) => isThere(item, isRecorded))
      const found = all.filter((isHere) => isHere !== undefined)
      return found.length === 0 ? undefined : found.some((isHere) => isHere)
    },
  }
}

/** The schema that is beside null. */
function nonNull(schema: unknown): unknown {
  const { anyOf } = Object(schema)
  return items(anyOf).find((option) => Object(option).type !== 'null') ?? schema
}
