import { isObject } from '../json.ts'
import type { Credential } from '../upstream.ts'
import { NotOffered } from './not-offered.ts'
import { isOwnHeader } from './parameters.ts'
import type { Path } from './places.ts'
import type { Located, OpenApiDocument } from './references.ts'
import type { RootSettings } from './settings.ts'

/** The security scheme with which the gateway calls the API. There is one for each API. */
export interface ChosenScheme {
  name: string
  credential: Pick<Credential, 'in' | 'name' | 'format'>
}

/** A security requirement: schemes that a call needs together. */
type Requirement = string[]

/**
 * The security scheme that the settings name, or the first scheme with which an operation can be
 * called. Undefined if no operation needs a scheme.
 */
export function chooseScheme(
  document: OpenApiDocument,
  { settings, operations }: { settings: RootSettings; operations: Located[] },
): ChosenScheme | undefined {
  const root = { value: document.root, path: [] }
  const { scheme: wanted } = settings.credential ?? {}
  if (wanted !== undefined) {
    const path = ['x-gateway', 'credential', 'scheme']
    const credential = credentialOf(schemeOf(document, wanted))
    if (typeof credential !== 'string') return { name: wanted, credential }
    document.findings.error(path, `The security scheme ${wanted.slice(0, 60)} ${credential}.`)
    return undefined
  }
  for (const holder of [root, ...operations]) {
    for (const requirement of requirementsOf(document, holder) ?? []) {
      const [name, ...others] = requirement
      if (name === undefined || others.length > 0) continue
      const credential = credentialOf(schemeOf(document, name))
      if (typeof credential !== 'string') return { name, credential }
    }
  }
  return undefined
}

/**
 * Whether calls of an operation need the key.
 * @throws NotOffered if they need something else than the key
 */
export function needsKey(document: OpenApiDocument, operation: Located, scheme: ChosenScheme | undefined): boolean {
  const requirements =
    requirementsOf(document, operation) ?? requirementsOf(document, { value: document.root, path: [] }) ?? []
  if (requirements.length === 0) return false
  const isMet = (requirement: Requirement) => requirement.every((name) => name === scheme?.name)
  if (!requirements.some(isMet)) {
    const together = requirements.find(({ length }) => length > 1)
    if (together && requirements.length === 1) {
      const pair = together.join(' and ').slice(0, 200)
      throw new NotOffered(
        [...operation.path],
        `its security needs ${pair} together, and the gateway sends only one key`,
      )
    }
    const names = [...new Set(requirements.flat())]
    const words = names.map((name) => {
      const credential = credentialOf(schemeOf(document, name))
      return typeof credential === 'string'
        ? `${name} ${credential}`
        : `the gateway calls this API with another scheme than ${name}`
    })
    throw new NotOffered([...operation.path], `its security cannot be met: ${words.join('; ').slice(0, 300)}`)
  }
  return !requirements.some((requirement) => requirement.length === 0)
}

function schemeOf(document: OpenApiDocument, name: string): unknown {
  const root = { value: document.root, path: [] as Path }
  const schemes = document.member(document.member(root, 'components'), 'securitySchemes')
  return document.member(schemes, name).value
}

function requirementsOf(document: OpenApiDocument, holder: Located): Requirement[] | undefined {
  const security = document.member(holder, 'security')
  // A value that is not a list is reported. Ignoring it would mean to send calls without the key
  // that they need.
  const requirements = document.list(security, 'security')
  return security.value === undefined ? undefined : requirements.map(({ value }) => Object.keys(value))
}

/** How the key of a scheme is sent, or a text that says why the gateway cannot use the scheme. */
function credentialOf(scheme: unknown): ChosenScheme['credential'] | string {
  const { type, in: place, name, scheme: kind } = isObject(scheme) ? scheme : {}
  if (type === 'apiKey' && (place === 'header' || place === 'query') && typeof name === 'string') {
    const lower = name.toLowerCase()
    const isSendable = /^[\w.$!#%&'*+^`|~-]{1,64}$/.test(name) && !isOwnHeader(lower)
    if (place === 'header')
      return isSendable ? { in: place, name: lower } : 'sends its key in a header that the gateway may not set'
    return /^[\w.$!*~[\]-]{1,64}$/.test(name)
      ? { in: place, name }
      : 'sends its key in a query parameter whose name has characters that are not allowed'
  }
  if (type === 'apiKey') return 'needs a cookie, which the gateway does not send'
  if (type === 'http' && String(kind).toLowerCase() === 'bearer') {
    return { in: 'header', name: 'authorization', format: (key) => `Bearer ${key}` }
  }
  if (type === 'http' && String(kind).toLowerCase() === 'basic') {
    // The key is `user:password` (RFC 7617).
    return { in: 'header', name: 'authorization', format: (key) => `Basic ${Buffer.from(key).toString('base64')}` }
  }
  if (scheme === undefined) return 'is not in components.securitySchemes'
  const kinds: Record<string, string> = {
    oauth2: 'OAuth 2.0',
    openIdConnect: 'OpenID Connect',
    mutualTLS: 'mutual TLS',
  }
  if (type === 'http') return `needs HTTP ${String(kind).slice(0, 40)}`
  return `needs ${kinds[String(type)] ?? 'something that the gateway does not send'}`
}
