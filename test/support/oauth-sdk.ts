import assert from 'node:assert/strict'
import {
  auth,
  Client,
  type FetchLike,
  type OAuthClientProvider,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client'
import { auth as earlierAuth } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client as EarlierClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as EarlierTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { MODERN } from './mcp-client.ts'
import { type Tokens, Visitor } from './oauth-client.ts'

/** The official client, newest and previous major. */
export type Generation = 'newest' | 'earlier'
export const GENERATIONS: readonly Generation[] = ['newest', 'earlier']

const NEWEST: ConstructorParameters<typeof Client> = [
  { name: 'newest', version: '1' },
  { versionNegotiation: { mode: { pin: MODERN } } },
]

/** Everything that an application stores: client, tokens, verifier, discovery. */
type Stored = Map<string, unknown>

/** A process of an application that signs in with the official client. */
export class SdkProcess {
  readonly stored: Stored
  /** How many times its user had to agree. */
  signIns = 0
  #generation: Generation
  #serverUrl: string
  #userToken: string
  #address: URL | undefined

  constructor(
    generation: Generation,
    { serverUrl, userToken, stored = new Map() }: { serverUrl: string; userToken: string; stored?: Stored },
  ) {
    this.#generation = generation
    this.#serverUrl = serverUrl
    this.#userToken = userToken
    this.stored = new Map(stored)
  }

  /**
   * Starts another process of the same application, with everything that this process has stored so
   * far.
   */
  fork(): SdkProcess {
    const { stored } = this
    return new SdkProcess(this.#generation, { serverUrl: this.#serverUrl, userToken: this.#userToken, stored })
  }

  get tokens(): Tokens {
    return this.stored.get('tokens') as Tokens
  }

  /** Signs in if there are no tokens. Otherwise refreshes them. */
  async authorize(fetchFn: FetchLike = fetch): Promise<void> {
    if ((await this.#auth({ fetchFn })) === 'AUTHORIZED') return
    const address = this.#address ?? assert.fail('the client did not ask for a sign-in')
    const visitor = new Visitor()
    const { searchParams } = await visitor.decide(await visitor.begin(address), this.#userToken)
    this.signIns += 1
    const code = searchParams.get('code') ?? assert.fail(String(searchParams))
    assert.equal(
      await this.#auth({ fetchFn, authorizationCode: code, iss: searchParams.get('iss') ?? '' }),
      'AUTHORIZED',
    )
  }

  /**
   * Refreshes as the client does. If that fails, no sign-in follows.
   *
   * @returns whether there are new tokens
   */
  async refresh(fetchFn: FetchLike = fetch): Promise<boolean> {
    const before = this.tokens
    return (await this.#auth({ fetchFn })) === 'AUTHORIZED' && this.tokens !== before
  }

  /** Names of the tools that a new session of the client gets. */
  async listTools(): Promise<string[]> {
    return await this.#connected(async (client) => (await client.listTools()).tools.map(({ name }) => name))
  }

  /** Calls a tool without arguments, and returns its answer as JSON text. */
  async callTool(name: string): Promise<string> {
    return await this.#connected(async (client) => JSON.stringify(await client.callTool({ name, arguments: {} })))
  }

  async #connected<T>(use: (client: Pick<Client, 'listTools' | 'callTool'>) => Promise<T>): Promise<T> {
    const url = new URL(this.#serverUrl)
    const authProvider = this.provider()
    const [newest, earlier] = [new Client(...NEWEST), new EarlierClient({ name: 'earlier', version: '1' })]
    if (this.#generation === 'newest') await newest.connect(new StreamableHTTPClientTransport(url, { authProvider }))
    else await earlier.connect(new EarlierTransport(url, { authProvider: authProvider as never }) as never)
    const client = this.#generation === 'newest' ? newest : (earlier as never as Client)
    try {
      return await use(client)
    } finally {
      await client.close()
    }
  }

  provider(): OAuthClientProvider {
    const { stored } = this
    return {
      redirectUrl: 'http://127.0.0.1:9/callback',
      clientMetadata: {
        client_name: 'SDK',
        redirect_uris: ['http://127.0.0.1:9/callback'],
        token_endpoint_auth_method: 'none',
      },
      clientInformation: () => stored.get('client') as never,
      saveClientInformation: (client) => void stored.set('client', client),
      tokens: () => stored.get('tokens') as never,
      saveTokens: (tokens) => void stored.set('tokens', tokens),
      codeVerifier: () => String(stored.get('verifier')),
      saveCodeVerifier: (verifier) => void stored.set('verifier', verifier),
      discoveryState: () => stored.get('discovery') as never,
      saveDiscoveryState: (discovery) => void stored.set('discovery', discovery),
      invalidateCredentials: (scope) => void (scope === 'all' ? stored.clear() : stored.delete(scope)),
      redirectToAuthorization: (address) => {
        this.#address = address
      },
    }
  }

  #auth(options: { fetchFn: FetchLike; authorizationCode?: string; iss?: string }): Promise<string> {
    const all = { ...options, serverUrl: this.#serverUrl }
    return this.#generation === 'newest'
      ? auth(this.provider(), all)
      : earlierAuth(this.provider() as never, all as never)
  }
}
