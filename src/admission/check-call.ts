import type { FastifyRequest } from 'fastify'
import type { ApiEndpoint } from '../catalog/api-endpoint.ts'
import type { Api, Catalog } from '../catalog/catalog.ts'
import { offeredApis } from '../catalog/catalog-state.ts'
import type { CallContext } from '../catalog/endpoint.ts'
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
  wantsRaw,
} from './call-request.ts'
import { type CallTarget, checkParameters } from './parameters.ts'
import { checkRights, chooseProviderKey } from './rights.ts'

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
  const { url = '' } = request.raw
  const pathEnd = url.indexOf('?') < 0 ? url.length : url.indexOf('?')
  // Each part of the path is decoded once.
  const [slug = '', ...rest] = url.slice('/v1/call/'.length, pathEnd).split('/')
  const api = findApi(catalog, decodeSegment(slug))
  const target = findEndpoint(api, rest.length === 1 ? decodeSegment(rest[0] ?? '') : undefined)
  const methods = target.endpoint.method === 'POST' ? ['POST'] : METHODS
  if (!methods.includes(request.method)) throw methodNotAllowed(methods)
  checkRights(target, principal, request)
  const given = queryParameters(url.slice(pathEnd + 1))
  if (request.body !== undefined) given.push(...bodyParameters(readBody(request)))
  const checked = checkParameters(target, given, contextOf(request))
  const raw = wantsRaw(request)
  const scenario = readScenario(request, principal)
  const preference = readPreference(request.headers, config.callTimeoutMs)
  const providerKey = chooseProviderKey(api, principal)
  requireServed({ lanes }, api)
  return { ...target, ...checked, providerKey, raw, scenario, preference }
}

export interface ServedDeps {
  /** Knows which workers are alive. */
  lanes: Pick<LaneDirectory, 'isServed' | 'hasWorker'>
}

/**
 * Whether a call of an API waits until an operator acts, so that nobody knows when it will be sent:
 * the API is held, or no living worker serves it.
 */
export function waitsForOperator({ lanes }: ServedDeps, { slug, pausedMode }: Api): boolean {
  return pausedMode === 'hold' || !lanes.hasWorker(slug)
}

/**
 * Refuses a call to an API that no running worker has loaded, because the call would wait until its
 * deadline.
 *
 * @throws GatewayError API_NOT_ENABLED
 */
export function requireServed({ lanes }: ServedDeps, { slug }: Api): void {
  if (lanes.isServed(slug)) return
  throw new GatewayError('API_NOT_ENABLED', {
    message: `No running worker has loaded the API ${slug}.`,
    hint: 'Retry later, or tell the operator',
    retryAfterMs: NOT_SERVED_RETRY_MS,
    tokens: { api: slug },
  })
}

/** Retry-After, milliseconds. Workers have restarted by then. */
const NOT_SERVED_RETRY_MS = 10_000

/**
 * Checks a call of a batch. The scenario is the only header of the batch's request that counts.
 * @throws GatewayError
 */
export function checkBatchCall(
  target: CallTarget,
  parameters: unknown,
  { request, principal }: { request: Pick<FastifyRequest, 'headers' | 'ip'>; principal: Principal },
): CheckedTarget {
  checkRights(target, principal, request)
  const checked = checkParameters(target, bodyParameters(parameters), contextOf(request))
  const scenario = readScenario(request, principal)
  const providerKey = chooseProviderKey(target.api, principal)
  return { ...target, ...checked, providerKey, raw: false, scenario }
}

function contextOf(request: Pick<FastifyRequest, 'ip'>): CallContext {
  return { now: Date.now(), callerAddress: () => request.ip }
}

/** @throws GatewayError API_NOT_FOUND */
export function findApi(catalog: Catalog, slug: string): Api {
  const api = catalog.get(slug)
  if (!api) throw apiNotFound(offeredApis(catalog), slug)
  return api
}

/**
 * @param name the endpoint without a slash at its start; undefined if the path names no endpoint
 * @throws GatewayError ENDPOINT_NOT_FOUND
 */
export function findEndpoint(api: Api, name: string | undefined): CallTarget {
  const endpoint = name === undefined ? undefined : api.endpoints.get(`/${name}`)
  if (!endpoint) throw endpointNotFound(api, name)
  return { api, endpoint }
}
