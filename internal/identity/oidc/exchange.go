package oidc

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/roost-batch/roost/internal/identity/proof"
)

const (
	clockSkew = time.Minute // between this host and a provider
	maxAge    = 24 * time.Hour
	maxClaim  = 256 // bytes of the value that names a user
)

// signingAlgorithms are those of ID tokens. None of them has a key that the client knows,
// too, and "none" is not among them, whatever a provider says of itself.
func signingAlgorithms() []string {
	return []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384,
		oidc.PS512, oidc.EdDSA}
}

// invalidError is the error for an answer that is there and not valid.
type invalidError struct{ text string }

func (e *invalidError) Error() string { return e.text }

func invalid(format string, args ...any) error { return &invalidError{fmt.Sprintf(format, args...)} }

// AnswerQuestion speaks to the provider of a question.
func AnswerQuestion(ctx context.Context, q *proof.Question) proof.Answer {
	answer, err := answerQuestion(ctx, q)
	var bad *invalidError
	if err != nil {
		return proof.Answer{Error: err.Error(), Refuse: errors.As(err, &bad)}
	}
	return answer
}

func answerQuestion(ctx context.Context, q *proof.Question) (a proof.Answer, err error) {
	client, err := newHTTPClient(q)
	if err != nil {
		return a, err
	}
	ctx = oidc.ClientContext(ctx, client)
	provider, err := oidc.NewProvider(ctx, q.Issuer)
	if err != nil {
		return a, fmt.Errorf("it does not describe itself: %w", err)
	}
	config := &oauth2.Config{ClientID: q.Client, ClientSecret: q.Secret, Endpoint: provider.Endpoint(),
		RedirectURL: q.Redirect, Scopes: append([]string{oidc.ScopeOpenID}, q.Scopes...)}
	if config.Endpoint.AuthStyle, err = authStyle(provider, q.Secret); err != nil {
		return a, err
	}
	if q.Code == "" {
		a.URL, err = authorizeURL(config, q)
		return a, err
	}
	return exchangeCode(ctx, provider, config, q)
}

// authStyle returns how the client shows its secret. Without it the library tries both
// ways, and sends the code twice.
func authStyle(provider *oidc.Provider, secret string) (oauth2.AuthStyle, error) {
	var says struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := provider.Claims(&says); err != nil {
		return 0, fmt.Errorf("it does not describe itself: %w", err)
	}
	basic := len(says.Methods) == 0 || slices.Contains(says.Methods, "client_secret_basic")
	if secret != "" && basic {
		return oauth2.AuthStyleInHeader, nil
	}
	return oauth2.AuthStyleInParams, nil
}

// authorizeURL returns where the browser goes.
func authorizeURL(config *oauth2.Config, q *proof.Question) (string, error) {
	u, err := url.Parse(config.Endpoint.AuthURL)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && !(q.Local && u.Scheme == "http") {
		return "", fmt.Errorf("its authorization endpoint %.200q is not an address of https", config.Endpoint.AuthURL)
	}
	age := maxAge
	options := []oauth2.AuthCodeOption{oidc.Nonce(q.Nonce), oauth2.S256ChallengeOption(q.Verifier)}
	if q.Fresh {
		age = 0
		options = append(options, oauth2.SetAuthURLParam("prompt", "login"))
	}
	// with max_age, the ID token has to say when the provider has asked its user
	options = append(options, oauth2.SetAuthURLParam("max_age", fmt.Sprint(int(age.Seconds()))))
	return config.AuthCodeURL(q.State, options...), nil
}

// exchangeCode exchanges a code for an ID token, and checks that.
func exchangeCode(ctx context.Context, provider *oidc.Provider, config *oauth2.Config,
	q *proof.Question) (a proof.Answer, err error) {
	if q.ResponseIssuer != "" && q.ResponseIssuer != q.Issuer {
		return a, invalid("the code is of another provider, %.200q", q.ResponseIssuer)
	}
	token, err := config.Exchange(ctx, q.Code, oauth2.VerifierOption(q.Verifier))
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused) && refused.Response.StatusCode < 500:
		return a, invalid("it refuses the code: status %d, %.100q %.200q", refused.Response.StatusCode,
			refused.ErrorCode, refused.ErrorDescription)
	case err != nil:
		return a, fmt.Errorf("it gives no ID token: %w", err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok || raw == "" {
		return a, invalid("it gives no ID token: is openid among the scopes?")
	}
	now := time.Now()
	verifier := provider.VerifierContext(ctx, &oidc.Config{ClientID: q.Client,
		SupportedSigningAlgs: signingAlgorithms(), Now: func() time.Time { return now.Add(-clockSkew) }})
	id, err := verifier.Verify(ctx, raw)
	if err != nil {
		return a, verifyError(err)
	}
	return checkToken(id, q, now)
}

// verifyError tells a token that is not valid from keys that cannot be read.
func verifyError(err error) error {
	var unreachable *url.Error
	if errors.As(err, &unreachable) || strings.Contains(err.Error(), "fetching keys") {
		return fmt.Errorf("its keys cannot be read: %w", err)
	}
	return invalid("its ID token is not valid: %v", err)
}

// tokenClaims are the claims that the library does not check.
type tokenClaims struct {
	AuthorizedParty string  `json:"azp"`
	AuthTime        float64 `json:"auth_time"`
	EmailVerified   any     `json:"email_verified"`
}

// checkToken checks what the signature does not say: that the token was made for this
// login, and whom it names.
func checkToken(id *oidc.IDToken, q *proof.Question, now time.Time) (a proof.Answer, err error) {
	var claims tokenClaims
	all := map[string]any{}
	if err := errors.Join(id.Claims(&claims), id.Claims(&all)); err != nil {
		return a, invalid("its ID token has strange claims: %v", err)
	}
	switch {
	case q.Nonce == "" || id.Nonce != q.Nonce:
		return a, invalid("its ID token is for another login: the nonce differs")
	case claims.AuthorizedParty != "" && claims.AuthorizedParty != q.Client,
		len(id.Audience) > 1 && claims.AuthorizedParty == "":
		return a, invalid("its ID token is for another client, azp %.100q", claims.AuthorizedParty)
	case id.IssuedAt.Before(q.Begun.Add(-clockSkew)):
		return a, invalid("its ID token is from %v, before the login began: compare the clocks",
			id.IssuedAt.UTC().Format(time.RFC3339))
	case id.IssuedAt.After(now.Add(clockSkew)):
		return a, invalid("its ID token is from the future, %v: compare the clocks",
			id.IssuedAt.UTC().Format(time.RFC3339))
	}
	if claims.AuthTime > 0 && claims.AuthTime < 1e11 {
		a.Proved = time.Unix(int64(claims.AuthTime), 0)
	}
	if q.Fresh && a.Proved.Before(q.Begun.Add(-clockSkew)) {
		return a, invalid("it has not asked its user again: auth_time is %v", a.Proved.UTC().Format(time.RFC3339))
	}
	value, ok := all[q.Claim].(string)
	if !ok || value == "" || len(value) > maxClaim || strings.ContainsFunc(value, isControl) {
		return a, invalid("its ID token has no claim %s that is a text of at most %d bytes", q.Claim, maxClaim)
	}
	if q.Claim == "email" && claims.EmailVerified != true && claims.EmailVerified != "true" {
		return a, invalid("it has not verified the address %.100q", value)
	}
	a.Value = value
	return a, nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }
