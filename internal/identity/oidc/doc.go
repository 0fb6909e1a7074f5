// Package oidc speaks to OpenID providers, for logins at the web daemon (OpenID Connect
// Core 1.0, the code flow of section 3.1, with PKCE, RFC 7636). It runs in a child of the
// schedd that has no rights and lives for one question: what a provider sends is parsed
// where it can harm nobody, and the keys of a provider are always those of now.
package oidc
