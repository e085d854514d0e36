import type { FastifyRequest } from 'fastify'
import { type ApiEndpoint, callMethod } from '../catalog/api-endpoint.ts'
import type { Api, Catalog } from '../catalog/catalog.ts'
import { offeredApis } from '../catalog/catalog-state.ts'
import { apiNotFound, endpointNotFound } from '../catalog/unknown-api.ts'
import { GatewayError } from '../errors.ts'
import type { LaneDirectory } from '../fleet/lane-directory.ts'
import { methodNotAllowed } from '../http/server/method-not-allowed.ts'
import type { CallJob } from '../queue/call-job.ts'
import type { Principal } from './authenticate.ts'
import {
  bodyParameters,
  decodeSegment,
  type Preference,
  queryParameters,
  readBody,
  readPreference,
  readScenario,
  splitUrl,
  wantsRaw,
} from './call-request.ts'
import { type CallTarget, type CheckedParameters, checkParameters, type GivenParameter } from './parameters.ts'
import { chooseProviderKey } from './provider-key-choice.ts'
import { checkRights } from './rights.ts'

export interface CheckedCall extends CheckedTarget {
  preference: Preference
}

export interface CheckedTarget {
  api: Api
  endpoint: ApiEndpoint
  providerKey: CallJob['providerKey']
  parameters: Record<string, unknown>
  extra: [string, string][]
  raw: boolean
  scenario: string | undefined
}

/**
 * HEAD is a GET whose answer has no body (RFC 9110, 9.1): it makes the same call and is charged for
 * it.
 */
const METHODS = ['GET', 'HEAD', 'POST']

/**
 * All checks that need no round trip, in the order in which failures are reported.
 *
 * @throws GatewayError
 */
export function checkCall(
  { catalog, config, lanes }: ServedDeps & { catalog: Catalog; config: { callTimeoutMs: number } },
  request: FastifyRequest,
  principal: Principal,
): CheckedCall {
  const url = request.raw.url ?? ''
  const target = findEndpoint(catalog, url)
  const methods = callMethod(target.endpoint.declaration) === 'POST' ? ['POST'] : METHODS
  if (!methods.includes(request.method)) throw methodNotAllowed(methods)
  // Read late: a refusal by the plan is answered before one for the body.
  const given = () => {
    const ofQuery = queryParameters(splitUrl(url).query)
    return request.body === undefined ? ofQuery : [...ofQuery, ...bodyParameters(readBody(request))]
  }
  const checked = checkTarget(target, given, { principal, request })
  const raw = wantsRaw(request)
  const scenario = readScenario(request, principal)
  const preference = readPreference(request.headers, config.callTimeoutMs)
  const providerKey = chooseProviderKey(target.api, principal)
  requireServed({ lanes }, target.api)
  return { ...target, ...checked, providerKey, raw, scenario, preference }
}

/** Which workers are alive; if it is absent, this is not checked. */
export interface ServedDeps {
  lanes?: Pick<LaneDirectory, 'isServed'> | undefined
}

/**
 * Refuses a call to an API that no running worker has loaded, because the call would wait until its
 * deadline.
 *
 * @throws GatewayError API_NOT_ENABLED
 */
export function requireServed({ lanes }: ServedDeps, { slug }: Api): void {
  if (!lanes || lanes.isServed(slug)) return
  throw new GatewayError('API_NOT_ENABLED', {
    message: `No worker that runs now has loaded the API ${slug}.`,
    hint: 'Retry later, or tell the operator',
    retryAfterMs: NOT_SERVED_RETRY_MS,
    tokens: { api: slug },
  })
}

/** Workers are restarted by then, milliseconds. */
const NOT_SERVED_RETRY_MS = 10_000

/** The scenario is the only header of the request that counts. @throws GatewayError */
export function checkBatchCall(
  target: CallTarget,
  given: () => GivenParameter[],
  { request, principal }: { request: Pick<FastifyRequest, 'headers' | 'ip'>; principal: Principal },
): CheckedTarget {
  const checked = checkTarget(target, given, { principal, request })
  const scenario = readScenario(request, principal)
  const providerKey = chooseProviderKey(target.api, principal)
  return { ...target, ...checked, providerKey, raw: false, scenario }
}

function checkTarget(
  target: CallTarget,
  given: () => GivenParameter[],
  { principal, request }: { principal: Principal; request: Pick<FastifyRequest, 'ip'> },
): CheckedParameters {
  checkRights(target.api, target.endpoint, principal)
  const context = {
    now: Date.now(),
    // A getter, because few endpoints need it, and reading the headers of proxies costs time.
    get callerAddress() {
      return request.ip
    },
  }
  return checkParameters(target, given(), context)
}

/**
 * Each part of the path is decoded once.
 *
 * @throws GatewayError API_NOT_FOUND, ENDPOINT_NOT_FOUND, INVALID_ENCODING
 */
function findEndpoint(catalog: Catalog, url: string): CallTarget {
  const [slug = '', ...rest] = splitUrl(url).path.slice('/v1/call/'.length).split('/')
  return findTarget(catalog, decodeSegment(slug), () => (rest.length === 1 ? decodeSegment(rest[0] ?? '') : undefined))
}

/**
 * `endpointName` has no slash at its start. It is a function because an unknown API is reported
 * before a name that cannot be decoded.
 *
 * @throws GatewayError API_NOT_FOUND or ENDPOINT_NOT_FOUND
 */
export function findTarget(catalog: Catalog, slug: string, endpointName: () => string | undefined): CallTarget {
  const api = catalog.get(slug)
  if (!api) throw apiNotFound(offeredApis(catalog), slug)
  const name = endpointName()
  const endpoint = name === undefined ? undefined : api.endpoints.get(`/${name}`)
  if (!endpoint) throw endpointNotFound(api, name)
  return { api, endpoint }
}
