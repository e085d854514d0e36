import { Client, type ClientOptions, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'

export const MODERN = '2026-07-28'

/** The members of an answer that tests read. An answer has more. */
interface McpAnswer {
  result?: {
    resultType?: string
    /** Id of a task, if the answer is about a task. */
    taskId: string
    status: string
    pollIntervalMs: number
    ttlMs: number
    createdAt: string
    lastUpdatedAt: string
  }
}

export interface McpConnection {
  client: Client
  /** The parsed JSON bodies of the server's answers, in order. Streams are left out. */
  answers: McpAnswer[]
}

/**
 * Connects the protocol's own client to a server of the gateway. The client is closed when the test
 * ends.
 */
export async function withMcpClient<T>(
  url: string,
  headers: Record<string, string>,
  options: ClientOptions,
  use: (connection: McpConnection) => Promise<T>,
): Promise<T> {
  const client = new Client({ name: 'test', version: '1' }, options)
  const answers: McpAnswer[] = []
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers },
    fetch: async (address, init) => {
      const response = await fetch(address, init)
      if (response.headers.get('content-type')?.startsWith('application/json')) {
        answers.push((await response.clone().json()) as McpAnswer)
      }
      return response
    },
  })
  await client.connect(transport)
  try {
    return await use({ client, answers })
  } finally {
    await client.close()
  }
}

/**
 * A message of the protocol's revision without a handshake, with the headers that must repeat parts
 * of the message.
 */
export function modernMessage(
  method: string,
  params: Record<string, unknown> = {},
  capabilities: object = {},
): { headers: Record<string, string>; body: object } {
  const name = params.name ?? params.uri ?? params.taskId
  return {
    headers: {
      'content-type': 'application/json',
      'mcp-protocol-version': MODERN,
      'mcp-method': method,
      ...(name === undefined ? {} : { 'mcp-name': String(name) }),
    },
    body: {
      jsonrpc: '2.0',
      id: 1,
      method,
      params: {
        ...params,
        _meta: {
          ...Object(params._meta),
          'io.modelcontextprotocol/protocolVersion': MODERN,
          'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
          'io.modelcontextprotocol/clientCapabilities': capabilities,
        },
      },
    },
  }
}
