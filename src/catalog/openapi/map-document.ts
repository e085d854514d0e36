import { createHash } from 'node:crypto'
import { isIP } from 'node:net'
import { isPublicAddress, unreachableBecause } from '../../net/reachable.ts'
import type { Endpoint } from '../endpoint.ts'
import { isObject } from '../json.ts'
import type { Credential, Upstream } from '../upstream.ts'
import type { UpstreamRequest } from '../upstream-request.ts'
import { type ChosenScheme, chooseScheme } from './credential.ts'
import { findOperations } from './find-operations.ts'
import { type MappingDeps, type OfferedOperation, OPERATIONS_MAX, offerOperation } from './operations.ts'
import { OpenApiDocument } from './references.ts'
import { type Findings, Unreadable } from './report.ts'
import type { Schema } from './schema-keywords.ts'
import { SchemaReader } from './schemas.ts'
import { type RootSettings, readRootSettings } from './settings.ts'
import { shortened } from './words.ts'

const NAME_MAX = 60
const DESCRIPTION_MAX = 500

/** Seconds between probes of an API whose settings do not say it. */
const PROBE_SECONDS = 300

/**
 * Turns an OpenAPI document into an upstream of the catalog. Parts that cannot be offered are left
 * out and reported.
 *
 * @returns undefined if there were errors, which are reported
 */
export function mapDocument(slug: string, root: unknown, findings: Findings): Upstream | undefined {
  findings.readFrom(root)
  if (!isObject(root)) {
    findings.error([], 'The document must be an object.')
    return undefined
  }
  if (root.swagger !== undefined) {
    findings.error(['swagger'], 'The document is Swagger 2.0. Convert it to OpenAPI 3 first.')
    return undefined
  }
  if (typeof root.openapi !== 'string' || !/^3\.[01]\.\d+/.test(root.openapi)) {
    findings.error(['openapi'], 'The member openapi must be a version 3.0.x or 3.1.x, such as 3.1.0.')
    return undefined
  }
  try {
    const document = new OpenApiDocument(root, findings)
    const settings = readRootSettings(document.member({ value: root, path: [] }, 'x-gateway'), findings)
    return settings && mapWithSettings(slug, document, settings)
  } catch (error) {
    if (error instanceof Unreadable) return undefined
    throw error
  }
}

function mapWithSettings(slug: string, document: OpenApiDocument, settings: RootSettings): Upstream | undefined {
  const { root, findings } = document
  const found = findOperations(document)
  const scheme = chooseScheme(document, { settings, operations: found.map(({ operation }) => operation) })
  const schemas = new SchemaReader(document)
  const deps: MappingDeps = { document, schemas, slug, settings, scheme }
  const offered = found.flatMap((operation) => offerOperation(deps, operation) ?? [])
  schemas.reportUnread()
  if (offered.length > OPERATIONS_MAX) {
    findings.error(
      ['paths'],
      `The document has ${offered.length} operations, and an API may have at most ${OPERATIONS_MAX} endpoints. Leave operations that nobody needs out with x-gateway.skip.`,
    )
    return undefined
  }
  const endpoints = uniqueEndpoints(offered, document)
  if (offered.length === 0) {
    if (findings.errors.length === 0) findings.error(['paths'], 'No operation of the document can become an endpoint.')
    return undefined
  }
  const baseUrl = baseUrlOf(document, settings)
  const probe = probeOf(document, { settings, offered })
  if (findings.errors.length > 0 || baseUrl === undefined || probe === undefined) return undefined
  const { info } = root
  const { title, description, termsOfService, license } = Object(info)
  const displayName = shortened(typeof title === 'string' ? title : slug, NAME_MAX) || slug
  const {
    terms = {},
    tier = 'developer',
    category = 'own',
    tags,
    attemptTimeoutMs,
    bodyBytesMax,
    rateHeaders,
  } = settings
  const { url = webAddress(termsOfService), licence = webAddress(Object(license).url), attribution } = terms
  const named = { ...(url && { url }), ...(licence && { licence }), ...(attribution && { attribution }) }
  return {
    displayName,
    category,
    description: shortened(typeof description === 'string' ? description : displayName, DESCRIPTION_MAX) || displayName,
    tags: tags ?? tagsOf(document),
    tierRequired: tier,
    terms: { summary: terms.summary ?? `The terms of the operator of ${displayName} apply.`, ...named },
    baseUrl,
    ...(scheme && { credential: credentialOf(scheme, { settings, offered }) }),
    caps: settings.caps,
    ...(rateHeaders && { rateHeaders: lowerCase(rateHeaders) }),
    ...(attemptTimeoutMs === undefined ? {} : { attemptTimeoutMs }),
    ...(bodyBytesMax === undefined ? {} : { bodyBytesMax }),
    probe,
    own: { digest: digestOf(root), mayBePrivate: settings.baseUrl !== undefined },
    endpoints,
  }
}

function uniqueEndpoints(offered: OfferedOperation[], { findings }: OpenApiDocument): Record<string, Endpoint> {
  const endpoints: Record<string, Endpoint> = {}
  for (const { endpointPath, endpoint, path } of offered) {
    if (Object.hasOwn(endpoints, endpointPath)) {
      findings.error(path, `Another operation has the name ${endpointPath.slice(1)} already; set x-gateway.name.`)
    }
    endpoints[endpointPath] = endpoint
  }
  return endpoints
}

/**
 * The base address. The address in the settings may be private; the first server of the document
 * may not.
 */
function baseUrlOf({ root, findings }: OpenApiDocument, settings: RootSettings): string | undefined {
  const isOperators = settings.baseUrl !== undefined
  const path = isOperators ? ['x-gateway', 'baseUrl'] : ['servers', 0, 'url']
  const [server] = Array.isArray(root.servers) ? root.servers : []
  const text = settings.baseUrl ?? withVariables(server)
  if (text === undefined) {
    findings.error(['servers'], 'The document names no server; set x-gateway.baseUrl.')
    return undefined
  }
  if (/[{}]/.test(text)) {
    findings.error(path, 'The address has a variable without a default; set x-gateway.baseUrl.')
    return undefined
  }
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
    findings.error(path, `The address ${text.slice(0, 100)} is not an http: or https: address; set x-gateway.baseUrl.`)
    return undefined
  }
  const { username, password, search, hash, hostname } = new URL(text)
  if (username || password || search || hash) {
    findings.error(path, 'The address must have no user, query or fragment.')
    return undefined
  }
  const obstacle = unreachableBecause(new URL(text))
  if (obstacle !== undefined) {
    findings.error(path, `The gateway cannot use the address, because ${obstacle}; set x-gateway.baseUrl.`)
    return undefined
  }
  if (!isOperators && isPrivate(hostname)) {
    findings.leaveOut(
      path,
      'The address is private, so the gateway blocks requests to it. To allow them, set x-gateway.baseUrl or UPSTREAM_<SLUG>_URL to the address.',
    )
  }
  // The address as requests will have it: without blanks around it, without the segments . and ..,
  // and without a user.
  return new URL(text).href.replace(/\/+$/, '')
}

function withVariables(server: unknown): string | undefined {
  const { url, variables } = Object(server)
  if (typeof url !== 'string') return undefined
  return url.replace(/\{([^{}]*)\}/g, (whole, name) => {
    const { default: value } = Object(Object.hasOwn(Object(variables), name) ? variables[name] : undefined)
    // A default must be a text, but people write ports and versions as numbers.
    return typeof value === 'string' || typeof value === 'number' ? String(value) : whole
  })
}

function isPrivate(hostname: string): boolean {
  const name = hostname.replace(/^\[|\]$|\.$/g, '')
  if (isIP(name) !== 0) return !isPublicAddress(name)
  return !name.includes('.') || /\.(?:localhost|local|internal|intranet|lan|home\.arpa)$/.test(name)
}

/** The request of an operation in a call without parameters, which has the defaults. */
function firstRequest(endpoint: Endpoint): UpstreamRequest {
  const schemas: [name: string, schema: Schema][] = Object.entries(Object(endpoint.parameters.properties))
  const defaults = schemas.map(([name, schema]) => [name, schema.default])
  const [request] = [endpoint.request(Object.fromEntries(defaults), { now: 0 })].flat()
  if (!request) throw new Error('an operation makes one request')
  return request
}

/** Names of the required parameters. */
function requiredOf({ parameters }: Endpoint): string[] {
  const { required } = parameters as { required?: string[] }
  return required ?? []
}

/**
 * The probe: the request that the settings name, or the request of the first reading operation
 * without required parameters.
 */
function probeOf(
  { findings }: OpenApiDocument,
  { settings, offered }: { settings: RootSettings; offered: OfferedOperation[] },
): Upstream['probe'] | undefined {
  const { operationId: wanted, everySeconds = PROBE_SECONDS } = settings.probe ?? {}
  const found = wanted === undefined ? offered.find(isProbe) : offered.find(isNamed(wanted))
  if (found && isProbe(found)) return { request: firstRequest(found.endpoint), everySeconds }
  const reason =
    wanted === undefined
      ? 'Every operation has a required parameter or changes something, so the document has no operation that the gateway can use as the probe. Give each required parameter of an operation that only reads a default.'
      : `The probe ${wanted.slice(0, 60)} must be an operation that the gateway offers, that only reads, and that has no required parameter.`
  findings.error(wanted === undefined ? ['paths'] : ['x-gateway', 'probe', 'operationId'], reason)
  return undefined
}

/** Whether the gateway can send the request of an operation by itself. */
function isProbe({ endpoint }: OfferedOperation): boolean {
  return (endpoint.effect ?? 'read') === 'read' && requiredOf(endpoint).length === 0
}

const isNamed =
  (name: string) =>
  ({ operationId, endpointPath }: OfferedOperation) =>
    operationId === name || endpointPath === `/${name}`

/**
 * Keys are checked with an operation that needs the key: with the probe, or else with the first
 * operation. An operation for everybody, such as the state of the service, accepts any key.
 */
function credentialOf(
  { credential }: ChosenScheme,
  { settings, offered }: { settings: RootSettings; offered: OfferedOperation[] },
): Credential {
  const { accessMode = 'platform_managed' } = settings.credential ?? {}
  const ofKey = offered.filter(({ needsKey }) => needsKey)
  const checks = ofKey.filter(isProbe)
  const { operationId: probe } = settings.probe ?? {}
  const found = (probe === undefined ? undefined : checks.find(isNamed(probe))) ?? checks[0]
  // Not every service refuses what its document says that it refuses.
  const check = found && { request: firstRequest(found.endpoint), isConclusive: false }
  return { accessMode, required: ofKey.length > 0, ...credential, ...(check && { check }) }
}

function lowerCase({
  remaining,
  reset,
  resetIs,
  appliesWhen,
}: NonNullable<RootSettings['rateHeaders']>): NonNullable<Upstream['rateHeaders']> {
  return {
    remaining: remaining.toLowerCase(),
    reset: reset.toLowerCase(),
    resetIs,
    ...(appliesWhen && { appliesWhen: { ...appliesWhen, header: appliesWhen.header.toLowerCase() } }),
  }
}

function tagsOf({ root }: OpenApiDocument): string[] {
  const names = (Array.isArray(root.tags) ? root.tags : []).map((tag) => Object(tag).name)
  return names
    .filter((name) => typeof name === 'string')
    .slice(0, 10)
    .map((name) => shortened(name, NAME_MAX).toLowerCase())
}

function webAddress(value: unknown): string | undefined {
  return typeof value === 'string' && URL.canParse(value) && /^https?:$/.test(new URL(value).protocol)
    ? value
    : undefined
}

/** A digest of the document. Two processes with the same digest have read the same document. */
function digestOf(root: Record<string, unknown>): string {
  return createHash('sha256').update(JSON.stringify(root)).digest('hex').slice(0, 12)
}
