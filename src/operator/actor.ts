import type { FastifyRequest } from 'fastify'
import type { Config } from '../config.ts'
import { readCookie } from '../http/request/cookies.ts'

/** The cookie with the name that an operator entered when logging in to the console. */
export const NAME_COOKIE = 'agw_operator'

/** What a person may do in the console: everything (`operator`), or only read (`viewer`). */
export type OperatorRole = 'operator' | 'viewer'

/** A user of the console or its API. */
export interface Operator {
  /** Undefined for a user of OPERATOR_TOKEN, which does not prove a name. */
  name: string | undefined
  role: OperatorRole
  /** How the user proved the identity: the token, an OIDC provider, or an access proxy. */
  by: 'token' | 'oidc' | 'proxy'
}

/** A user of the operator token. */
export const TOKEN_OPERATOR: Operator = { name: undefined, role: 'operator', by: 'token' }

const operators = new WeakMap<object, Operator>()

/** Stores the sender of a request after the guard of the console has authenticated it. */
export function setOperator(request: FastifyRequest, operator: Operator): void {
  operators.set(request, operator)
}

/** The role of a request's sender; undefined if the guard has refused the request. */
export function roleOf(request: FastifyRequest): OperatorRole | undefined {
  return operators.get(request)?.role
}

/**
 * The actor for the audit log, with the address. A name that a provider or a proxy proved is
 * followed by the kind of proof: `ada (oidc, 192.0.2.7)`. A name without a kind was entered by a
 * user of the token and is not proven.
 */
export function actorOf(request: Pick<FastifyRequest, 'headers' | 'ip'>): string {
  const { name: proven, by } = operators.get(request) ?? TOKEN_OPERATOR
  if (proven !== undefined) return `${proven} (${by}, ${request.ip})`
  const named = request.headers['x-operator']
  return unprovenActor(request, typeof named === 'string' ? named : '')
}

/**
 * The name of a user of the operator token: the name given with the request, or else the name of
 * the last log-in.
 */
export function unprovenActor(request: Pick<FastifyRequest, 'headers' | 'ip'>, given: string): string {
  const name = isOperatorName(given) ? given : operatorName(request)
  return `${name || 'operator'} (${request.ip})`
}

/** The name entered at the log-in to the console; empty if there is none. */
export function operatorName({ headers }: Pick<FastifyRequest, 'headers'>): string {
  const name = readCookie(headers.cookie, NAME_COOKIE) ?? ''
  return isOperatorName(name) ? name : ''
}

/**
 * Whether the audit log may record an unproven name. Its characters must not allow it to look like
 * anything else.
 */
export function isOperatorName(name: string): boolean {
  return /^[\w.@ -]{1,64}$/.test(name)
}

/**
 * The role of a person in these groups; undefined if none of the groups has a role. Fails closed.
 */
export function roleIn(groups: readonly string[], access: Config['operatorAccess']): OperatorRole | undefined {
  if (access.operatorGroups.some((group) => groups.includes(group))) return 'operator'
  return access.viewerGroups.some((group) => groups.includes(group)) ? 'viewer' : undefined
}

/** A proven name, if it may be shown in the audit log and on pages; otherwise undefined. */
export function provenName(text: unknown): string | undefined {
  return typeof text === 'string' && /^[\p{L}\p{N}._@+ -]{1,128}$/u.test(text) ? text : undefined
}
