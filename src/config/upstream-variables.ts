import { unreachableBecause } from '../net/reachable.ts'
import { ConfigError, type Environment, type EnvironmentReader, httpAddress } from './environment-reader.ts'

/** Settings of one upstream in the environment. */
export interface UpstreamSettings {
  url?: string
  key?: string
  caps?: { concurrency?: number; rates?: { max: number; seconds: number }[] }
}

/** The project's own address, which the `User-Agent` names if the operator has set no `CONTACT`. */
export const PROJECT_CONTACT = 'https://github.com/agent-api-gateway/agent-api-gateway'

/**
 * Whether `CONTACT` says how to reach the operator: a mail address, a web address or a telephone
 * number that is not the project's.
 */
export function isContact(contact: string): boolean {
  return (
    /^(?:https?:\/\/[^\s/]+|(?:mailto:)?[^\s@]+@[^\s@]+$|tel:\+?\d)/i.test(contact) &&
    !contact.startsWith(PROJECT_CONTACT)
  )
}

/** The address of a link to the operator; undefined if `CONTACT` is another text. */
export function contactHref(contact: string): string | undefined {
  if (/^(?:https?:\/\/|mailto:|tel:)[^\s<>]+$/i.test(contact)) return contact
  return /^[^\s@<>]+@[^\s@<>]+$/.test(contact) ? `mailto:${contact}` : undefined
}

/** What no header can carry: control characters, and characters outside of Latin-1. */
const NOT_IN_HEADERS = /[^\x20-\x7e\xa0-\xff]/

/** How this gateway names its operator to sources and users. */
export interface Contact {
  /** The contact for the `User-Agent`. */
  contact: string
  /** Whom users of this gateway can ask; undefined if `CONTACT` is not set. */
  operatorContact: string | undefined
  /** Whether `CONTACT` tells sources how to reach the operator. Some sources then allow more. */
  isOperatorNamed: boolean
}

/** @throws ConfigError if CONTACT cannot be in a header, because then no request could be sent */
export function readContact(read: EnvironmentReader): Contact {
  const given = read.text('CONTACT', '')
  if (NOT_IN_HEADERS.test(given)) {
    throw new ConfigError('CONTACT must be a single line without characters that a header cannot carry, such as Ł or ☎')
  }
  return { contact: given || PROJECT_CONTACT, operatorContact: given || undefined, isOperatorNamed: isContact(given) }
}

/**
 * The settings of all upstreams, by slug: `UPSTREAM_CODE_HOST_USER_URL` is the setting `url` of the
 * slug `code-host-user`. A new upstream needs no line here.
 *
 * @throws ConfigError that names the variable that cannot be used
 */
export function readUpstreams(environment: Environment): Map<string, UpstreamSettings> {
  const bySlug = new Map<string, UpstreamSettings>()
  for (const [name, value] of Object.entries(environment)) {
    const match = /^UPSTREAM_([A-Z0-9_]+)_(URL|KEY|CAPS)$/.exec(name)
    if (!match?.[1] || !value) continue
    const slug = match[1].toLowerCase().replaceAll('_', '-')
    const settings = bySlug.get(slug) ?? {}
    if (match[2] === 'URL') settings.url = upstreamAddress(name, value)
    else if (match[2] === 'KEY') settings.key = upstreamKey(name, value)
    else settings.caps = parseCaps(name, value)
    bySlug.set(slug, settings)
  }
  return bySlug
}

/** @throws ConfigError for an address to which no connection can lead */
function upstreamAddress(name: string, value: string): string {
  const address = httpAddress(name, value)
  const obstacle = unreachableBecause(new URL(address))
  if (obstacle !== undefined) throw new ConfigError(`${name} cannot be used: ${obstacle}`)
  return address
}

/** @throws ConfigError for a key that no header and no address can carry as it is */
function upstreamKey(name: string, value: string): string {
  if (/^[\x21-\x7e]+$/.test(value)) return value
  throw new ConfigError(`${name} must be printable ASCII without spaces and line breaks`)
}

/** Parses `concurrency=4,60/3600,10/60`: the requests in flight, and pairs of requests/seconds. */
export function parseCaps(name: string, value: string): NonNullable<UpstreamSettings['caps']> {
  const caps: NonNullable<UpstreamSettings['caps']> = {}
  for (const part of value.split(',').map((text) => text.trim())) {
    const concurrency = /^concurrency=([1-9]\d{0,4})$/.exec(part)
    const rate = /^([1-9]\d{0,6})\/([1-9]\d{0,6}|0?\.\d{1,3}|[1-9]\d{0,6}\.\d{1,3})$/.exec(part)
    if (concurrency && caps.concurrency === undefined) caps.concurrency = Number(concurrency[1])
    else if (rate) caps.rates = [...(caps.rates ?? []), { max: Number(rate[1]), seconds: Number(rate[2]) }]
    else throw new ConfigError(`${name} must look like concurrency=4,60/3600,10/60 (requests/seconds)`)
  }
  return caps
}

/** `all`, `none`, or slugs separated by commas. Undefined means all. */
export function readBuiltIn(read: EnvironmentReader): string[] | undefined {
  const slugs = read.list('BUILTIN_UPSTREAMS', 'the slug of an API, such as weather', (slug) =>
    /^[a-z][a-z0-9-]*$/.test(slug),
  )
  if (slugs.length === 0 || (slugs.length === 1 && slugs[0] === 'all')) return undefined
  return slugs.length === 1 && slugs[0] === 'none' ? [] : slugs
}
