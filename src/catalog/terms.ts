/** The origin of data, and what the upstream asks of people who show them. */
export interface Terms {
  /** For people, one or two sentences. */
  summary: string
  url?: string
  /** Address of the licence of the data, if it has one. */
  licence?: string
  /** What has to be shown beside the data. */
  attribution?: string
  /** Without a key of one's own the source allows non-commercial use alone. */
  nonCommercial?: boolean
}
