/** Where the data come from, and what the source demands of people who show the data. */
export interface Terms {
  /** One or two sentences for people. */
  summary: string
  url?: string
  /** Address of the licence of the data, if the data have a licence. */
  licence?: string
  /** The credit that must be shown beside the data. */
  attribution?: string
  /** Whether the source allows only non-commercial use, unless callers have their own key. */
  nonCommercial?: boolean
}
