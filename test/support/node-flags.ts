/**
 * Flags of Node for the many short processes of a test run: threads that help each collection would only get in each
 * other's way where every processor has work, and room for what a start leaves behind spares it a tenth of its time.
 */
export const SPARING_FLAGS = ['--single-threaded-gc', '--min-semi-space-size=16']
