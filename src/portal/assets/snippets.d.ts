/** A call to show in several languages. */
export interface SnippetCall {
  baseUrl: string
  slug: string
  path: string
  /** Default: GET. */
  method?: 'GET' | 'POST'
  parameters: Record<string, unknown>
}

export declare const PLACEHOLDER: string
/** The call in each language, by its name. */
export declare function snippets(call: SnippetCall): Record<string, string>
/** What an MCP client's configuration holds for the server of one API, or of all without a slug. */
export declare function mcpConfiguration(baseUrl: string, slug?: string): string
/** The configuration of each MCP client for the server at `url`, by the client's name. */
export declare function clientSetups(url: string): Record<string, string>
