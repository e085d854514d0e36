import { field, record } from '../catalog/fields.ts'
import { isObject, members } from '../catalog/json.ts'
import { freshFor, lifetime } from '../catalog/lifetimes.ts'
import { InvalidParameter } from '../catalog/parameter-values.ts'
import { optional, param } from '../catalog/parameters.ts'
import { failed, overLimit, type ResponseClass, rejected } from '../catalog/response-class.ts'
import { endpoint, upstream, words } from '../catalog/upstream-file.ts'
import { path, type UpstreamResponse } from '../catalog/upstream-request.ts'
import recordings from './recordings/ip-lookup.json' with { type: 'json' }

const BAN_MS = 3_600_000

/** Special-purpose IPv4 ranges (IANA registry): network and prefix length. */
const specialIpv4: [string, number][] = [
  ['0.0.0.0', 8], // this network
  ['10.0.0.0', 8], // private
  ['100.64.0.0', 10], // carrier-grade NAT
  ['127.0.0.0', 8], // loopback
  ['169.254.0.0', 16], // link-local
  ['172.16.0.0', 12], // private
  ['192.0.0.0', 24], // protocol assignments
  ['192.0.2.0', 24], // documentation
  ['192.88.99.0', 24], // former 6to4 relays
  ['192.168.0.0', 16], // private
  ['198.18.0.0', 15], // benchmarks
  ['198.51.100.0', 24], // documentation
  ['203.0.113.0', 24], // documentation
  ['224.0.0.0', 3], // multicast, reserved, broadcast
]

const location = record({
  ip: field.text('query', 'The address looked up'),
  isp: field.text('isp', 'Internet service provider'),
  lat: field.number('lat', 'Degrees north'),
  lon: field.number('lon', 'Degrees east'),
  city: field.text('city', 'City'),
  country: field.text('country', 'Name of the country, in English'),
  country_code: field.text('countryCode', 'ISO 3166-1 alpha-2'),
  region: field.text('region', 'Code of the region within the country'),
  region_name: field.text('regionName', 'Name of the region'),
  zip: field.text('zip', 'Empty if unknown'),
  timezone: field.text('timezone', 'IANA name'),
  org: field.text('org', 'Organization the address belongs to'),
  as: field.text('as', 'Number and name of the autonomous system'),
})

export default upstream({
  displayName: 'IP lookup',
  category: 'network',
  description: 'Location and network operator of an IPv4 or IPv6 address; of your own address when you name none.',
  tags: ['ip', 'geolocation', 'isp', 'network', 'location'],
  keywords: words('whois geoip hostname server visitor internet provider'),
  terms: {
    nonCommercial: true,
    summary: 'The free host is for non-commercial use and plain HTTP only; commercial use needs an ip-api.com pro key.',
    url: 'https://ip-api.com/docs/legal',
    attribution: 'IP data by ip-api.com',
  },
  // The free host refuses TLS.
  baseUrl: 'http://ip-api.com',
  credential: {
    accessMode: 'platform_managed',
    in: 'query',
    name: 'key',
    baseUrl: 'https://pro.ip-api.com',
    // Paid plans publish no limit: this limit keeps bursts polite.
    caps: { concurrency: 10, rates: [{ max: 1_000, seconds: 60 }] },
  },
  // Whoever goes on over the limit is banned for an hour.
  caps: { concurrency: 4, rates: [{ max: 45, seconds: 60 }] },
  rateHeaders: { remaining: 'x-rl', reset: 'x-ttl', resetIs: 'seconds' },
  probe: { request: { path: path`/json/8.8.8.8`, query: { fields: 'status' } }, everySeconds: 300 },
  reservedParameters: words('key fields lang callback'),
  classify,
  endpoints: {
    '/lookup': endpoint({
      description: 'Location and network of an IP address.',
      parameters: {
        ip: optional(param.text('Public IPv4 or IPv6 address; your own when omitted', { minLength: 2, maxLength: 45 })),
      },
      data: location,
      cache: { perCaller: true, ...freshFor(lifetime.day), staleIfErrorSeconds: lifetime.week },
      // Without an address the upstream would look up the gateway's own.
      complete: ({ ip }, { callerAddress }) => {
        if (ip !== undefined) return { ip: publicAddress(ip, 'it is not a public address') }
        const address = callerAddress?.()
        if (address === undefined)
          throw new InvalidParameter('ip', 'it is needed if the address of the caller is unknown')
        return { ip: publicAddress(address, 'it is needed, as your own address is not a public one') }
      },
      request: ({ ip }) => ({ path: path`/json/${ip ?? ''}` }),
      readFrom: ({ body }) => (members(body).status === 'success' ? body : undefined),
      example: recordings['/lookup'],
    }),
  },
})

/**
 * Every failed lookup is HTTP 200; a 403 without a reason is the ban of an address that went on
 * over the limit.
 */
function classify({ status, body }: UpstreamResponse): ResponseClass | undefined {
  if (status === 403 && body === undefined) return overLimit(BAN_MS)
  if (status !== 200 || !isObject(body) || body.status !== 'fail') return undefined
  if (body.message === 'private range' || body.message === 'reserved range' || body.message === 'invalid query')
    return rejected('This is not the address of a public host.')
  return failed()
}

/**
 * The address in its canonical form; an IPv4-mapped IPv6 address becomes the IPv4 address it stands
 * for.
 */
function publicAddress(given: string, reasonIfNotPublic: string): string {
  const address = given.trim()
  const ipv4 = ipv4Number(address)
  if (ipv4 !== undefined) {
    if (isPublicIpv4(ipv4)) return address
    throw new InvalidParameter('ip', reasonIfNotPublic)
  }
  const ipv6 = canonicalIpv6(address)
  if (ipv6 === undefined) throw new InvalidParameter('ip', 'it is not an IPv4 or IPv6 address')
  const groups = ipv6Groups(ipv6)
  const mapped = mappedIpv4(groups)
  if (mapped !== undefined && isPublicIpv4(mapped)) return ipv4Text(mapped)
  if (mapped !== undefined || !isPublicIpv6(groups)) throw new InvalidParameter('ip', reasonIfNotPublic)
  return ipv6
}

function isPublicIpv4(address: number): boolean {
  return !specialIpv4.some(([network, bits]) => {
    const size = 2 ** (32 - bits)
    return Math.floor(address / size) * size === ipv4Number(network)
  })
}

/**
 * Global unicast is 2000::/3, without protocol assignments, documentation and 6to4, which wraps any
 * IPv4 address.
 */
function isPublicIpv6([first = 0, second = 0]: number[]): boolean {
  if (first < 0x2000 || first > 0x3fff) return false
  const isAssignment = first === 0x2001 && second < 0x0200
  const isDocumentation = (first === 0x2001 && second === 0x0db8) || (first === 0x3fff && second < 0x1000)
  return !isAssignment && !isDocumentation && first !== 0x2002
}

/**
 * Dotted decimal only: no leading zeros, hexadecimal or missing parts, which parsers read in
 * different ways.
 */
function ipv4Number(address: string): number | undefined {
  const parts = address.split('.')
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) < 256))
    return undefined
  return parts.reduce((sum, part) => sum * 256 + Number(part), 0)
}

function ipv4Text(address: number): string {
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join('.')
}

/**
 * The canonical spelling of an IPv6 address (RFC 5952, without a dotted tail); undefined if it is
 * none.
 */
function canonicalIpv6(address: string): string | undefined {
  const url = `http://[${address}]`
  if (!/^[0-9a-f:.]+$/i.test(address) || !URL.canParse(url)) return undefined
  return new URL(url).hostname.slice(1, -1)
}

function ipv6Groups(canonical: string): number[] {
  const [head = [], tail = []] = canonical.split('::').map((part) => part.split(':').filter((group) => group !== ''))
  const zeros: string[] = Array(8 - head.length - tail.length).fill('0')
  return [...head, ...zeros, ...tail].map((group) => Number.parseInt(group, 16))
}

/** The address in ::ffff:0:0/96. */
function mappedIpv4(groups: number[]): number | undefined {
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff
  return isMapped ? (groups[6] ?? 0) * 65_536 + (groups[7] ?? 0) : undefined
}
