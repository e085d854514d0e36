import type { IncomingHttpHeaders } from 'node:http'
import type { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import type { Api } from '../catalog/catalog.ts'
import { createApiServer, createCatalogServer, type McpDeps } from './server.ts'

/** A message as it came over HTTP. */
export interface McpMessage {
  url: string
  headers: IncomingHttpHeaders
  /** Parsed. */
  body: unknown
}

export interface McpAnswer {
  status: number
  /** Absent where there is no body. */
  type: string | undefined
  body: string
}

/** What the server of all APIs answers. */
export function answerCatalogMessage(sources: McpDeps, message: McpMessage): Promise<McpAnswer> {
  return answerMessage(createCatalogServer(sources), sources, message)
}

/** What the server of one API answers. */
export function answerApiMessage(api: Api, sources: McpDeps, message: McpMessage): Promise<McpAnswer> {
  return answerMessage(createApiServer(api, sources), sources, message)
}

/** Gives the message to the protocol's own server, which lives as long as its answer takes. */
async function answerMessage(server: Server, { baseUrl }: McpDeps, message: McpMessage): Promise<McpAnswer> {
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
  try {
    await server.connect(transport)
    const headers = Object.entries(message.headers).flatMap(([name, value]): [string, string][] =>
      value === undefined ? [] : [[name, String(value)]],
    )
    const asked = new Request(new URL(message.url, baseUrl), { method: 'POST', headers })
    const response = await transport.handleRequest(asked, { parsedBody: message.body })
    const type = response.headers.get('content-type') ?? undefined
    return { status: response.status, type, body: await response.text() }
  } finally {
    await server.close()
  }
}
