/* global Scalar */
// The window's own name for the script that was loaded before this module.
window.Scalar.createApiReference('#reference', {
  url: '/openapi.json',
  theme: 'default',
  withDefaultFonts: false,
  hideClientButton: true,
  telemetry: false,
  showDeveloperTools: 'never',
  agent: { disabled: true },
  mcp: { disabled: true },
  persistAuth: false,
  metaData: { title: 'Reference · Agent API Gateway' },
  authentication: { preferredSecurityScheme: 'apiKey' },
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
})
